// The numeric kernels behind one interface. Pure functions over caller-owned memory.
//
// A Kernels object is a handle to one instruction set's functions; choose it once with select() and
// pass it down. Every set gives the same bits (kernels/NUMERICS.md); the scalar set is the
// executable form of that document. Arrays are f32, row-major, and need no particular alignment
// unless said. No function allocates or throws. All are thread-safe on disjoint outputs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "kernels/isa.h"
#include "kernels/matrix.h"
#include "kernels/params.h"
#include "kernels/thread_pool.h"

namespace spel::kernels {

/// How ternary rows are multiplied; all give identical integers.
enum class TernaryKernel { kDotprod, kAddsub, kScalar };
[[nodiscard]] std::string_view ternary_kernel_name(TernaryKernel kernel);

struct FunctionTable;

class Kernels {
 public:
  /// The best attainable set, or `forced`. Throws Error(kInvalidArgument) naming the attainable
  /// ones if `forced` is not among them. SPEL_KERNEL is read by the configuration, not here.
  [[nodiscard]] static const Kernels& select(std::optional<Isa> forced = std::nullopt);

  Kernels(const Kernels&) = delete;
  Kernels& operator=(const Kernels&) = delete;

  [[nodiscard]] Isa isa() const noexcept { return isa_; }
  /// The instruction set in full, for reports: "avx512", "avx2+vnni", "avx2", "scalar+fma", …
  [[nodiscard]] std::string_view variant() const noexcept { return variant_; }

  // --- Matrix products, split over the pool by output rows ---------------------------------------

  /// y[i][r] = W x[i] for i < m. x is [m][cols] with row stride x_stride, y has row stride
  /// y_stride.
  void matmul(ThreadPool& pool, const DenseMatrix& w, const float* x, std::size_t x_stride,
              std::size_t m, float* y, std::size_t y_stride) const;
  /// y[i][r] = float(integer dot) * (row_scale[r] * x_scale[i]).
  void matmul(ThreadPool& pool, const Int8Matrix& w, const QuantizedRows& x, std::size_t m,
              float* y, std::size_t y_stride) const;
  void matmul(ThreadPool& pool, const TernaryMatrix& w, const QuantizedRows& x, std::size_t m,
              float* y, std::size_t y_stride, TernaryKernel kernel = TernaryKernel::kDotprod) const;

  // --- Row operations (serial; callers split by rows) --------------------------------------------

  /// Quantises one row of n values and zeroes the padding up to `stride`.
  void quantize_row(const float* x, std::size_t n, std::int8_t* q, std::size_t stride,
                    float* scale) const;
  /// y = x * (1/sqrt(mean(x^2) + eps)) * w; x and y may be the same.
  void rms_norm(const float* x, const float* w, std::size_t n, float eps, float* y) const;
  /// x[h] *= 1/sqrt(sum(x[h]^2) + eps) for each of `heads` rows of head_dim.
  void l2_normalize(float* x, std::size_t heads, std::size_t head_dim, float eps) const;
  /// Interleaved pairs: (x0, x1) -> (x0 c - x1 s, x1 c + x0 s). cos, sin are [head_dim/2].
  void rope(float* x, std::size_t heads, std::size_t head_dim, const float* cos,
            const float* sin) const;
  /// Pairs (x[i], x[i + rotary_dim/2]) of the first rotary_dim values of each head turn as above;
  /// the others stay. Heads lie head_stride apart; cos, sin are [rotary_dim/2].
  void rope_halves(float* x, std::size_t heads, std::size_t head_stride, std::size_t rotary_dim,
                   const float* cos, const float* sin) const;
  /// y[i] = sum over taps, oldest first, of rows[t][i] * w[t][i]; `rows` has `taps` pointers.
  void short_conv(const float* const* rows, const float* w, std::size_t taps, std::size_t n,
                  float* y) const;
  /// y = silu(x).
  void silu(const float* x, std::size_t n, float* y) const;
  /// y = silu(gate) * up.
  void silu_mul(const float* gate, const float* up, std::size_t n, float* y) const;
  /// x += y.
  void add(float* x, const float* y, std::size_t n) const;
  /// y = sigmoid(x).
  void sigmoid(const float* x, std::size_t n, float* y) const;
  /// y = sigmoid(gate) * x; y may be either.
  void sigmoid_mul(const float* gate, const float* x, std::size_t n, float* y) const;
  /// p = exp(x - max(x)); returns the sum of p (16 virtual lanes), max in *max.
  float exp_sum(const float* x, std::size_t n, float* p, float* max) const;
  /// Index of the largest value, the lowest on a tie; NaN never wins. 0 if all are NaN.
  std::size_t argmax(const float* x, std::size_t n) const;

  // --- Mixers ------------------------------------------------------------------------------------

  /// The delta rule of one head over tokens.count >= 1 tokens. tokens.to has a place for the last.
  void delta_rule(const DeltaRule& rule, const DeltaTokens& tokens) const;
  /// Of one token, per head: decay = exp(-rate * softplus(a + step_bias)), rate >= 0;
  /// write = write_scale * sigmoid(b).
  void delta_gates(const float* a, const float* b, const float* rate, const float* step_bias,
                   std::size_t heads, float write_scale, float* decay, float* write) const;
  /// Writes one key vector into its panel: keys as in AttentionHead.
  void store_key(float* keys, std::size_t position, std::size_t head_dim, const float* k) const;
  /// out [head_dim] = softmax(scale * q K^T) V. `scratch` holds positions rounded up to 16 floats.
  void attend(const AttentionHead& head, const float* q, float* scratch, float* out) const;
  /// A block's part for each of `queries` heads, q_stride apart, of one token: at
  /// parts + i * part_stride the sum of numerators * values [head_dim], the sum of the numerators
  /// exp(logit - max), and max.
  void attend_block(const AttentionBlock& block, const float* q, std::size_t q_stride,
                    std::size_t queries, float* parts, std::size_t part_stride) const;
  /// out [head_dim] = what one query attends to over `blocks` >= 1 parts, part_stride apart.
  void merge_attention(const float* parts, std::size_t part_stride, std::size_t blocks,
                       std::size_t head_dim, float* out) const;

  // --- Choosing and searching notes --------------------------------------------------------------
  // A bf16 panel is [dim][kLanes]: kLanes vectors side by side.

  /// out[q][lane] = queries[q] . lane of the panel; queries are [count][dim].
  void bf16_dots(const std::uint16_t* panel, const float* queries, std::size_t count,
                 std::size_t dim, float* out) const;
  /// The lanes are consecutive tokens, and so are the 1 … kLanes `queries`, [tokens][dim]: the
  /// largest mean, over the lanes the last of them may stand at, of the dots of tokens that meet.
  /// Those that fall before the first lane add nothing.
  [[nodiscard]] float bf16_alignment(const std::uint16_t* panel, const float* queries,
                                     std::size_t tokens, std::size_t dim) const;
  /// The same sum for the two tokens of `query`, int8 [kCoarseTokens][kCoarseCoordinates] in
  /// [-127, 127], over each of `count` panels [kCoarseCoordinates / 4][kLanes][4] of such values
  /// plus 128.
  void coarse_alignments(const std::uint8_t* panels, std::size_t count, const std::int8_t* query,
                         std::int32_t* scores) const;
  /// out[r] = row r . x, of `count` rows of n values, `stride` apart.
  void ordered_dots(const float* rows, std::size_t stride, std::size_t count, const float* x,
                    std::size_t n, float* out) const;
  /// Brings each of `rows` rows of n values to length 1; zeros stay zeros.
  void unit_rows(float* x, std::size_t rows, std::size_t n) const;
  /// out[places[i].output] += places[i].sign * x[i], for i in order.
  void project(const float* x, const ProjectedTo* places, std::size_t n, float* out) const;

  // --- Choosing a token: one row of logits
  // --------------------------------------------------------- NaN is as if it were not there.

  /// largest[b] = the largest of block b, kMaxBlock elements each, the last maybe fewer; -inf for
  /// none.
  void block_max(const float* x, std::size_t n, float* largest) const;
  /// Fills in the places of the elements >= least, rising; returns how many. `places` has room for
  /// n.
  [[nodiscard]] std::size_t places_at_least(const float* x, std::size_t n, float least,
                                            std::uint32_t* places) const;
  /// Fills in the places of the elements that stay in the race, rising; returns how many. `places`
  /// has room for n.
  [[nodiscard]] std::size_t race(const float* x, std::size_t n, const Race& rules,
                                 std::uint32_t* places) const;
  /// The sum of exp_f64(x / temperature - top), each term the bits of scalar_math.h.
  [[nodiscard]] double softmax_sum(const float* x, std::size_t n, double temperature,
                                   double top) const;
  /// y = exp(x), the bits of scalar_math.h, but 0 for NaN; x and y may be the same.
  void exp_f64(const double* x, std::size_t n, double* y) const;

 private:
  friend struct KernelRegistry;
  Kernels(Isa isa, std::string_view variant, const FunctionTable& table)
      : isa_(isa), variant_(variant), table_(table) {}

  Isa isa_;
  std::string_view variant_;
  const FunctionTable& table_;
};

}  // namespace spel::kernels
