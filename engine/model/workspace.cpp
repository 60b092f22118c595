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

/// What `of` says of delta layers; 0 of others.
template <typename Of>
auto of_delta(const Of& of) {
  return [of](const LayerSpec& layer) {
    const auto* delta = std::get_if<DeltaSpec>(&layer.mixer);
    return delta != nullptr ? of(*delta) : std::size_t{0};
  };
}
/// What `of` says of attention layers that sum in blocks, or of those that do not; 0 of others.
template <typename Of>
auto of_attention(bool in_blocks, const Of& of) {
  return [in_blocks, of](const LayerSpec& layer) {
    const auto* attention = std::get_if<AttentionSpec>(&layer.mixer);
    return attention != nullptr && attention->in_blocks == in_blocks ? of(*attention)
                                                                     : std::size_t{0};
  };
}

/// Parts of attention in blocks that are held at once: beyond it rows take turns.
constexpr std::size_t kAttentionPartsMax = std::size_t{4} << 20;

}  // namespace

Workspace::Workspace(const ModelSpec& spec, std::size_t rows, std::size_t max_seq) {
  const std::size_t d = spec.d_model;
  const std::size_t mixer =
      std::max(d, widest(spec, [](const LayerSpec& layer) { return inner_width(layer.mixer); }));
  const std::size_t d_ff = widest(spec, [](const LayerSpec& layer) { return layer.d_ff; });
  x.resize(rows * d);
  h.resize(rows * mixer);
  mixed.resize(rows * mixer);
  in.resize(rows * widest(spec, [](const LayerSpec& layer) { return in_width(layer.mixer); }));
  conv.resize(rows * widest(spec, of_delta([](const DeltaSpec& of) {
                              return of.conv_place == ConvPlace::kProjection ? of.qkv_width() : 0;
                            })));
  decay.resize(rows * widest(spec, of_delta([](const DeltaSpec& of) {
                               return of.input_gates ? of.value_heads : 0;
                             })));
  write.resize(decay.size());
  gate_up.resize(rows * 2 * d_ff);
  act.resize(rows * d_ff);
  logits.resize(rows * spec.vocab_size);
  states.resize(rows);
  zeros.resize(widest(spec, of_delta([d](const DeltaSpec& of) { return of.conv_width(d); })));
  delta_stride =
      round_up(16 * widest(spec, of_delta([](const DeltaSpec& of) { return of.key_dim; })), 16);
  delta = kernels::AlignedBuffer(
      widest(spec, of_delta([](const DeltaSpec& of) { return of.key_heads; })) * delta_stride *
      sizeof(float));
  attention_stride = round_up(max_seq, 16);
  attention.resize(
      widest(spec, of_attention(false, [](const AttentionSpec& of) { return of.heads; })) *
      attention_stride);
  const std::size_t blocks = (max_seq + kernels::kAttentionBlock - 1) / kernels::kAttentionBlock;
  const std::size_t row_parts =
      blocks * widest(spec, of_attention(true, [](const AttentionSpec& of) {
                        return of.heads * (of.head_dim + 2);
                      }));
  if (row_parts > 0) {
    const std::size_t at_once = std::clamp<std::size_t>(kAttentionPartsMax / row_parts, 1, rows);
    attention_rows.resize(at_once);
    attention_parts.resize(at_once * row_parts);
  }
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
