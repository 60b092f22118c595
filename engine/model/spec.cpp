#include "engine/model/spec.h"

namespace spel::engine {
namespace {

std::uint64_t mixer_vectors(const DeltaSpec& spec, std::uint64_t d_model) {
  return d_model * spec.conv_taps + 2 * std::uint64_t{spec.heads};
}
std::uint64_t mixer_vectors(const AttentionSpec& /*spec*/, std::uint64_t /*d_model*/) { return 0; }

}  // namespace

std::uint64_t ModelSpec::parameters() const {
  const std::uint64_t d = d_model;
  std::uint64_t n = 2 * d * vocab_size + d;
  for (const LayerSpec& layer : layers) {
    n += 2 * d + d * (qkv_width(layer.mixer) + mixer_width(layer.mixer)) + 3 * d * layer.d_ff;
    n += std::visit([d](const auto& mixer) { return mixer_vectors(mixer, d); }, layer.mixer);
  }
  return n;
}

}  // namespace spel::engine
