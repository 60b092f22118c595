// Plain argument structs of the kernels. No std types: the instruction-set files include this.
#pragma once

#include <cstddef>
#include <cstdint>

namespace spel::kernels {

/// int8 rows made from f32 rows: q = round_half_even(x / scale), scale = max|x| / 127
/// (scale = 1e-12 for a row of zeros).
struct QuantizedRows {
  std::int8_t* values;  ///< [m][stride]
  float* scales;        ///< [m]
  std::size_t stride;   ///< Values per row, >= cols; a multiple of 64. Padding is zero.
};

/// One head's slice of a Gated-DeltaNet update over the tokens of one sequence.
struct DeltaRule {
  std::size_t head_dim_k;  ///< Columns of the state.
  std::size_t head_dim_v;  ///< Rows of the state.
  float decay;             ///< a, in (0, 1)
  float write;             ///< beta, in (0, 1)
  float read_scale;        ///< Multiplies the output: 1/sqrt(head_dim).
  bool decay_before_read;  ///< false: v - S k (the document's); true: v - (a S) k (Qwen's).
};

/// One (token row, head) of causal attention over a KV cache laid out for the kernels.
struct AttentionHead {
  const float* keys;      ///< [ceil(positions/16)][head_dim][16]: panels of 16 positions.
  const float* values;    ///< [positions][head_dim]
  std::size_t positions;  ///< Positions attended to, >= 1.
  std::size_t head_dim;
  float logit_scale;
};

}  // namespace spel::kernels
