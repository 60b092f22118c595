// Plain argument structs of the kernels. No std types: the instruction-set files include this.
#pragma once

#include <cstddef>
#include <cstdint>

namespace spel::kernels {

/// Virtual lanes (NUMERICS.md): what lies side by side in a panel.
inline constexpr std::size_t kLanes = 16;

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
  float read_scale;        ///< Multiplies the output: 1/sqrt(head_dim).
  bool decay_before_read;  ///< false: v - S k (the document's); true: v - (a S) k (Qwen's).
};

/// The tokens one head's delta rule runs over, in order, and where their states go.
struct DeltaTokens {
  std::size_t count;
  const float*
      q;  ///< [count][stride]; k and v alike. q and k have head_dim_k values, v head_dim_v.
  const float* k;
  const float* v;
  std::size_t stride;
  const float* decay;       ///< a of token t at decay[t * gate_stride], in [0, 1].
  const float* write;       ///< beta alike, in [0, 2].
  std::size_t gate_stride;  ///< 0: of every token the same.
  float* out;               ///< [count][out_stride], head_dim_v values each.
  std::size_t out_stride;
  const float* from;  ///< State before the first token, [head_dim_v][head_dim_k].
  float* const* to;   ///< [count] The state after token t goes to to[t] + to_offset, if to[t] is
  std::size_t to_offset;  ///< not null. The last one may be `from` itself.
  float* work;            ///< Scratch, [16][head_dim_k].
  bool past_caches;       ///< Write kept states to memory without reading their lines first: for
                          ///< states that would leave the caches anyway before they are read.
};

/// One (token row, head) of causal attention over a KV cache laid out for the kernels.
struct AttentionHead {
  const float* keys;      ///< [ceil(positions/16)][head_dim][16]: panels of 16 positions.
  const float* values;    ///< [positions][head_dim]
  std::size_t positions;  ///< Positions attended to, >= 1.
  std::size_t head_dim;
  float logit_scale;
};

/// Positions whose numerators are summed before they are merged with others'.
inline constexpr std::size_t kAttentionBlock = 256;

/// Some of the positions that a key-value head attends to, for all query heads that read it.
struct AttentionBlock {
  const float* keys;      ///< [ceil(positions/16)][head_dim][16], as in AttentionHead.
  const float* values;    ///< [positions][head_dim]
  std::size_t positions;  ///< 1 … kAttentionBlock.
  std::size_t head_dim;
  float logit_scale;
};

/// The last tokens of a query that coarse_alignments() compares, and the int8 coordinates of each.
inline constexpr std::size_t kCoarseTokens = 2;
inline constexpr std::size_t kCoarseCoordinates = 16;

/// Where one input of a sparse projection goes.
struct ProjectedTo {
  std::uint32_t output;
  float sign;  ///< 1 or -1.
};

/// Logits per block of block_max().
inline constexpr std::size_t kMaxBlock = 64;

/// Which elements of a row of logits stay in a race of logit and noise. With v = 1 - u of an
/// element's draw (counter.h) and h the upper word of the f64 bits of 2^52 v, element i stays if
/// float(h) <= fma(x[i] - top, slope, level).
struct Race {
  std::uint64_t stream;  ///< The draw of element i is mix(stream ^ (first + i)).
  std::uint64_t first;
  float top;
  float slope;
  float level;
};

}  // namespace spel::kernels
