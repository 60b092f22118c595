#include "engine/model/workspace.h"

#include <algorithm>

namespace spel::engine {
namespace {

/// The widest of anything over the layers.
template <typename Width>
std::size_t widest(const ModelSpec& spec, const Width& width) {
  std::size_t most = 0;
  for (const LayerSpec& layer : spec.layers) {
    most = std::max(most, width(layer));
  }
  return most;
}

std::size_t mixer_of(const LayerSpec& layer) { return mixer_width(layer.mixer); }
std::size_t feed_forward_of(const LayerSpec& layer) { return layer.d_ff; }
std::size_t heads_of(const LayerSpec& layer) {
  return std::visit([](const auto& mixer) { return mixer.heads; }, layer.mixer);
}
std::size_t head_dim_of(const LayerSpec& layer) {
  return std::visit([](const auto& mixer) { return mixer.head_dim; }, layer.mixer);
}

}  // namespace

Workspace::Workspace(const ModelSpec& spec, std::size_t rows, std::size_t max_seq) {
  const std::size_t d = spec.d_model;
  const std::size_t mixer = std::max(d, widest(spec, mixer_of));
  const std::size_t d_ff = widest(spec, feed_forward_of);
  const std::size_t heads = widest(spec, heads_of);
  x.resize(rows * d);
  h.resize(rows * mixer);
  mixed.resize(rows * mixer);
  qkv.resize(rows * widest(spec, [](const LayerSpec& layer) { return qkv_width(layer.mixer); }));
  gate_up.resize(rows * 2 * d_ff);
  act.resize(rows * d_ff);
  logits.resize(rows * spec.vocab_size);
  states.resize(rows);
  zeros.resize(d);
  delta_stride = round_up(16 * widest(spec, head_dim_of), 16);
  delta = kernels::AlignedBuffer(heads * delta_stride * sizeof(float));
  attention_stride = round_up(max_seq, 16);
  attention.resize(heads * attention_stride);
  quantized.resize(rows * round_up(std::max(mixer, d_ff), 64));
  quantized_scales.resize(rows);
}

float* Workspace::delta_of(std::size_t head) {
  return reinterpret_cast<float*>(delta.data()) + head * delta_stride;
}

float* Workspace::attention_of(std::size_t head) {
  return attention.data() + head * attention_stride;
}

}  // namespace spel::engine
