// A model as data: what its layers are, and in what order. An architecture (engine/arch) makes one
// from a configuration; the transformer runs it and knows no architecture.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace spel::engine {

enum class ConvActivation { kNone, kSilu };
/// What the short convolution runs over: the layer's input, or q|k|v after their projection.
enum class ConvPlace { kInput, kProjection };
/// Whether the delta rule reads S or a*S (see kernels::DeltaRule).
enum class ReadOrder { kBeforeDecay, kAfterDecay };

/// Decay and write rate from the token's own input (see Kernels::delta_gates): two more projections
/// a layer, of a value a head each. Without them both are weights.
struct InputGates {
  float write_scale = 1.0F;  ///< 2 lets the rule subtract more than was there.

  friend bool operator==(const InputGates&, const InputGates&) = default;
};

/// out = rms_norm(out, w) * silu(z), a head at a time; z is one more projection, as wide as v.
struct GatedNorm {
  float eps = 0.0F;

  friend bool operator==(const GatedNorm&, const GatedNorm&) = default;
};

/// A Gated-DeltaNet layer: a short convolution, one projection to q|k|v (and what gates and norm
/// want), the delta rule value head by value head over L2-normalised q and k. Value head h reads
/// key head h / (value_heads / key_heads).
struct DeltaSpec {
  std::size_t key_heads = 0;
  std::size_t value_heads = 0;  ///< A multiple of key_heads.
  std::size_t key_dim = 0;      ///< Of one head.
  std::size_t value_dim = 0;    ///< Of one head.
  std::size_t conv_taps = 0;
  ConvPlace conv_place = ConvPlace::kInput;
  ConvActivation conv_activation = ConvActivation::kNone;
  ReadOrder read_order = ReadOrder::kBeforeDecay;
  float l2_norm_eps = 0.0F;
  std::optional<InputGates> input_gates;
  std::optional<GatedNorm> gated_norm;

  [[nodiscard]] std::size_t keys_width() const { return key_heads * key_dim; }
  [[nodiscard]] std::size_t values_width() const { return value_heads * value_dim; }
  [[nodiscard]] std::size_t qkv_width() const { return 2 * keys_width() + values_width(); }
  /// Values of one head's state.
  [[nodiscard]] std::size_t head_state() const { return value_dim * key_dim; }
  /// Values one row of the convolution's input has.
  [[nodiscard]] std::size_t conv_width(std::size_t d_model) const {
    return conv_place == ConvPlace::kInput ? d_model : qkv_width();
  }

  friend bool operator==(const DeltaSpec&, const DeltaSpec&) = default;
};

/// Which values of a head turn together: neighbours, or those half of `dims` apart.
enum class RopePairs { kNeighbours, kHalves };

/// Rotary position embedding over the first `dims` values of a head.
struct RopeSpec {
  RopePairs pairs = RopePairs::kNeighbours;
  std::size_t dims = 0;  ///< Even. All of the head with kNeighbours.
  double theta = 0.0;

  friend bool operator==(const RopeSpec&, const RopeSpec&) = default;
};

/// How q and k are normalised before they turn: to length 1; by RMS with weights, a head at a time
/// (one vector of weights for all heads) or over their whole width.
enum class QkNorm { kLength, kRmsHead, kRmsWidth };

/// Causal attention over everything before: softmax of logit_scale * q k. Query head h reads
/// key-value head h / (heads / kv_heads).
struct AttentionSpec {
  std::size_t heads = 0;
  std::size_t kv_heads = 0;
  std::size_t head_dim = 0;
  float logit_scale = 0.0F;
  QkNorm qk_norm = QkNorm::kLength;
  float qk_norm_eps = 0.0F;
  std::optional<RopeSpec> rope;
  bool output_gate = false;  ///< out *= sigmoid(gate); gate is one more projection, as wide as q.
  /// Sums over fixed blocks of positions, merged (NUMERICS.md), rather than over all at once: other
  /// bits, and work for more threads than there are key-value heads. All at once is for as many
  /// key-value heads as heads, each normalised on its own.
  bool in_blocks = false;

  [[nodiscard]] std::size_t queries_width() const { return heads * head_dim; }
  [[nodiscard]] std::size_t keys_width() const { return kv_heads * head_dim; }

  friend bool operator==(const AttentionSpec&, const AttentionSpec&) = default;
};

using MixerSpec = std::variant<DeltaSpec, AttentionSpec>;

/// Rows of a mixer's first projection. Delta: q|k|v, then z of a gated norm, then b and a of input
/// gates (of the write rate, of the decay). Attention: q|k|v, then the output gate.
[[nodiscard]] std::size_t in_width(const MixerSpec& mixer);
/// Values one token's inner result has: the columns of a mixer's second projection.
[[nodiscard]] std::size_t inner_width(const MixerSpec& mixer);
[[nodiscard]] inline bool is_attention(const MixerSpec& mixer) {
  return std::holds_alternative<AttentionSpec>(mixer);
}

/// Where a block's two norms stand: x += f(norm(x)), or x += norm(f(x)).
enum class NormPlace { kBefore, kAfter };

/// A mixer, then a SwiGLU MLP, each with a norm and added to the stream.
struct LayerSpec {
  MixerSpec mixer;
  std::size_t d_ff = 0;
  NormPlace norms = NormPlace::kBefore;

  friend bool operator==(const LayerSpec&, const LayerSpec&) = default;
};

/// Immutable once an architecture has checked it.
struct ModelSpec {
  std::string name;
  std::size_t d_model = 0;
  std::size_t vocab_size = 0;
  std::size_t max_seq = 0;  ///< Positions the model was made for.
  float rms_norm_eps = 0.0F;
  bool tied_embeddings = false;          ///< The head is the embedding.
  std::vector<std::int32_t> end_tokens;  ///< Ids that end an answer.
  std::vector<LayerSpec> layers;

  /// Of all matrices and vectors, embedding and head included (once, if they are tied).
  [[nodiscard]] std::uint64_t parameters() const;

  friend bool operator==(const ModelSpec&, const ModelSpec&) = default;
};

}  // namespace spel::engine
