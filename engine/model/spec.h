// A model as data: what its layers are, and in what order. An architecture (engine/arch) makes one
// from a configuration; the transformer runs it and knows no architecture.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <variant>
#include <vector>

namespace spel::engine {

enum class ConvActivation { kNone, kSilu };
/// Whether the delta rule reads S or a*S (see kernels::DeltaRule).
enum class ReadOrder { kBeforeDecay, kAfterDecay };

/// A Gated-DeltaNet layer: a short convolution over the layer's input, one projection to q|k|v, the
/// delta rule head by head over normalised q and k, with one decay and one write rate a head.
struct DeltaSpec {
  std::size_t heads = 0;
  std::size_t head_dim = 0;
  std::size_t conv_taps = 0;
  ConvActivation conv_activation = ConvActivation::kNone;
  ReadOrder read_order = ReadOrder::kBeforeDecay;
  float l2_norm_eps = 0.0F;

  friend bool operator==(const DeltaSpec&, const DeltaSpec&) = default;
};

/// Causal attention over everything before: normalised, rotated q and k, softmax of
/// logit_scale * q k.
struct AttentionSpec {
  std::size_t heads = 0;
  std::size_t head_dim = 0;
  float logit_scale = 0.0F;
  double rope_theta = 0.0;
  float l2_norm_eps = 0.0F;

  friend bool operator==(const AttentionSpec&, const AttentionSpec&) = default;
};

using MixerSpec = std::variant<DeltaSpec, AttentionSpec>;

/// Values one token's q (or k, or v) of the layer has.
[[nodiscard]] inline std::size_t mixer_width(const MixerSpec& mixer) {
  return std::visit([](const auto& spec) { return spec.heads * spec.head_dim; }, mixer);
}
/// Rows of the projection to q|k|v.
[[nodiscard]] inline std::size_t qkv_width(const MixerSpec& mixer) {
  return 3 * mixer_width(mixer);
}
[[nodiscard]] inline bool is_attention(const MixerSpec& mixer) {
  return std::holds_alternative<AttentionSpec>(mixer);
}

/// x += mixer(norm(x)), then x += mlp(norm(x)) with a SwiGLU MLP.
struct LayerSpec {
  MixerSpec mixer;
  std::size_t d_ff = 0;

  friend bool operator==(const LayerSpec&, const LayerSpec&) = default;
};

/// Immutable once an architecture has checked it.
struct ModelSpec {
  std::string name;
  std::size_t d_model = 0;
  std::size_t vocab_size = 0;
  std::size_t max_seq = 0;  ///< Positions the model was made for.
  float rms_norm_eps = 0.0F;
  std::vector<std::int32_t> end_tokens;  ///< Ids that end an answer.
  std::vector<LayerSpec> layers;

  /// Of all matrices and vectors, embedding and head included.
  [[nodiscard]] std::uint64_t parameters() const;

  friend bool operator==(const ModelSpec&, const ModelSpec&) = default;
};

}  // namespace spel::engine
