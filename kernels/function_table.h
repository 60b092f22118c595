// What one instruction-set file exports: a table of plain functions. Internal to kernels/.
//
// Only PODs and raw pointers here: the instruction-set files are compiled with flags the rest of
// the program may not run with, so nothing inline or templated from std may be emitted there.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/params.h"

namespace spel::kernels {

/// Rows of 32-bit words ready for a product: f32 values, or int8 values four to a word.
/// One row is used where it lies; several are re-laid by FunctionTable::pack_rows as
/// [tile][word][rows of the tile].
struct PackedRows {
  const void* words;
  std::size_t rows;
  std::size_t tile_rows_max;  ///< What they were packed for.
};

/// One dense product over a range of panels.
struct DenseJob {
  const std::byte* panels;
  std::size_t panel_bytes;
  std::size_t rows;  ///< Outputs; the last panel may be partial.
  std::size_t cols;
  PackedRows x;
  float* y;  ///< [x.rows][y_stride]
  std::size_t y_stride;
};

/// One int8 or ternary product over a range of panels.
struct LowBitJob {
  const std::byte* panels;
  std::size_t groups;  ///< 64-byte groups per panel: 4 columns each (int8), 16 each (ternary).
  std::size_t rows;
  PackedRows x;
  const std::int32_t* x_sums;  ///< [x.rows] sum of each int8 row.
  const float* x_scales;       ///< [x.rows]
  const float* row_scales;     ///< [rows rounded up to 16]
  float* y;
  std::size_t y_stride;
};

using DenseFn = void (*)(const DenseJob&, std::size_t panel_begin, std::size_t panel_end);
using LowBitFn = void (*)(const LowBitJob&, std::size_t panel_begin, std::size_t panel_end);

struct FunctionTable {
  /// Tallest register tile, as pack_rows' tile_rows_max: f32, bf16 and int8 weights; ternary ones.
  std::size_t dense_tile_rows;
  std::size_t ternary_tile_rows;
  /// Panels the product takes at once for m rows: blocks of work should be a multiple of it.
  std::size_t (*dense_panel_group)(std::size_t m);
  std::size_t (*ternary_panel_group)(std::size_t m);
  /// [rows][words], `stride_bytes` apart, into the tiled layout of PackedRows.
  void (*pack_rows)(const void* x, std::size_t stride_bytes, std::size_t rows, std::size_t words,
                    std::size_t tile_rows_max, void* packed);
  std::int32_t (*sum_int8)(const std::int8_t* x, std::size_t n);

  DenseFn matmul_f32;
  DenseFn matmul_bf16;
  LowBitFn matmul_int8;
  LowBitFn matmul_ternary_dotprod;
  LowBitFn matmul_ternary_addsub;
  LowBitFn matmul_ternary_scalar;

  void (*quantize_row)(const float* x, std::size_t n, std::int8_t* q, std::size_t stride,
                       float* scale);
  void (*rms_norm)(const float* x, const float* w, std::size_t n, float eps, float* y);
  void (*l2_normalize)(float* x, std::size_t heads, std::size_t head_dim, float eps);
  void (*rope)(float* x, std::size_t heads, std::size_t head_dim, const float* cos,
               const float* sin);
  void (*rope_halves)(float* x, std::size_t heads, std::size_t head_stride, std::size_t rotary_dim,
                      const float* cos, const float* sin);
  void (*short_conv)(const float* const* rows, const float* w, std::size_t taps, std::size_t n,
                     float* y);
  void (*silu)(const float* x, std::size_t n, float* y);
  void (*silu_mul)(const float* gate, const float* up, std::size_t n, float* y);
  void (*add)(float* x, const float* y, std::size_t n);
  void (*sigmoid)(const float* x, std::size_t n, float* y);
  void (*sigmoid_mul)(const float* gate, const float* x, std::size_t n, float* y);
  float (*exp_sum)(const float* x, std::size_t n, float* p, float* max);
  std::size_t (*argmax)(const float* x, std::size_t n);
  void (*delta_rule)(const DeltaRule& rule, const DeltaTokens& tokens);
  void (*store_key)(float* keys, std::size_t position, std::size_t head_dim, const float* k);
  void (*attend)(const AttentionHead& head, const float* q, float* scratch, float* out);
  void (*delta_gates)(const float* a, const float* b, const float* rate, const float* step_bias,
                      std::size_t heads, float write_scale, float* decay, float* write);
  void (*attend_block)(const AttentionBlock& block, const float* q, std::size_t q_stride,
                       std::size_t queries, float* parts, std::size_t part_stride);
  void (*merge_attention)(const float* parts, std::size_t part_stride, std::size_t blocks,
                          std::size_t head_dim, float* out);

  void (*bf16_dots)(const std::uint16_t* panel, const float* queries, std::size_t count,
                    std::size_t dim, float* out);
  float (*bf16_alignment)(const std::uint16_t* panel, const float* queries, std::size_t tokens,
                          std::size_t dim);
  void (*coarse_alignments)(const std::uint8_t* panels, std::size_t count, const std::int8_t* query,
                            std::int32_t* scores);
  void (*ordered_dots)(const float* rows, std::size_t stride, std::size_t count, const float* x,
                       std::size_t n, float* out);
  void (*unit_rows)(float* x, std::size_t rows, std::size_t n);
  void (*project)(const float* x, const ProjectedTo* places, std::size_t n, float* out);

  void (*block_max)(const float* x, std::size_t n, float* largest);
  std::size_t (*places_at_least)(const float* x, std::size_t n, float least, std::uint32_t* places);
  std::size_t (*race)(const float* x, std::size_t n, const Race& rules, std::uint32_t* places);
  double (*softmax_sum)(const float* x, std::size_t n, double temperature, double top);
  void (*exp_f64)(const double* x, std::size_t n, double* y);
};

extern const FunctionTable kScalarTable;
extern const FunctionTable kScalarFmaTable;
extern const FunctionTable kAvx2Table;
extern const FunctionTable kAvx2VnniTable;
extern const FunctionTable kAvx512Table;
extern const FunctionTable kNeonTable;

}  // namespace spel::kernels
