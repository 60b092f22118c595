#include "engine/model/spec.h"

namespace spel::engine {
namespace {

std::size_t in_width_of(const DeltaSpec& spec) {
  return spec.qkv_width() + (spec.gated_norm ? spec.values_width() : 0) +
         (spec.input_gates ? 2 * spec.value_heads : 0);
}
std::size_t in_width_of(const AttentionSpec& spec) {
  return (spec.output_gate ? 2 : 1) * spec.queries_width() + 2 * spec.keys_width();
}

// Convolution, decay and write rate or what they are computed with, and the norm's weights.
std::uint64_t mixer_vectors(const DeltaSpec& spec, std::size_t d_model) {
  return std::uint64_t{spec.conv_width(d_model)} * spec.conv_taps + 2 * spec.value_heads +
         (spec.gated_norm ? spec.value_dim : 0);
}
std::uint64_t mixer_vectors(const AttentionSpec& spec, std::size_t /*d_model*/) {
  switch (spec.qk_norm) {
    case QkNorm::kLength:
      return 0;
    case QkNorm::kRmsHead:
      return 2 * spec.head_dim;
    case QkNorm::kRmsWidth:
      return spec.queries_width() + spec.keys_width();
  }
  return 0;
}

}  // namespace

std::size_t in_width(const MixerSpec& mixer) {
  return std::visit([](const auto& spec) { return in_width_of(spec); }, mixer);
}

std::size_t inner_width(const MixerSpec& mixer) {
  const auto* delta = std::get_if<DeltaSpec>(&mixer);
  return delta != nullptr ? delta->values_width() : std::get<AttentionSpec>(mixer).queries_width();
}

std::uint64_t ModelSpec::parameters() const {
  const std::uint64_t d = d_model;
  std::uint64_t n = (tied_embeddings ? 1 : 2) * d * vocab_size + d;
  for (const LayerSpec& layer : layers) {
    n += 2 * d + d * (in_width(layer.mixer) + inner_width(layer.mixer)) + 3 * d * layer.d_ff;
    n += std::visit([this](const auto& mixer) { return mixer_vectors(mixer, d_model); },
                    layer.mixer);
  }
  return n;
}

}  // namespace spel::engine
