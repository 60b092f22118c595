#include "engine/state/hybrid_state.h"

#include <algorithm>
#include <cassert>
#include <cstring>

namespace spel::engine {
namespace {

float* floats(kernels::AlignedBuffer& buffer) { return reinterpret_cast<float*>(buffer.data()); }
const float* floats(const kernels::AlignedBuffer& buffer) {
  return reinterpret_cast<const float*>(buffer.data());
}

StateLayout::Layer layer_layout(const DeltaSpec& spec, std::size_t d_model,
                                std::size_t ring_slots) {
  return {.attention = false,
          .state = spec.value_heads * spec.head_state(),
          .conv_width = spec.conv_width(d_model),
          .conv_rows = ring_slots + spec.conv_taps - 1,
          .taps_before = spec.conv_taps - 1};
}
StateLayout::Layer layer_layout(const AttentionSpec& spec, std::size_t /*d_model*/,
                                std::size_t /*ring_slots*/) {
  return {.attention = true, .kv_heads = spec.kv_heads, .head_dim = spec.head_dim};
}

}  // namespace

StateLayout::StateLayout(const ModelSpec& spec, std::size_t max_seq_in, std::size_t ring_slots_in)
    : max_seq(max_seq_in), ring_slots(ring_slots_in) {
  for (const LayerSpec& layer : spec.layers) {
    layers.push_back(
        std::visit([&](const auto& mixer) { return layer_layout(mixer, spec.d_model, ring_slots); },
                   layer.mixer));
  }
}

HybridState::HybridState(const StateLayout& layout)
    : layout_(layout), layers_(layout.layers.size()) {
  for (std::size_t i = 0; i < layers_.size(); ++i) {
    const StateLayout::Layer& of = layout.layers[i];
    Layer& layer = layers_[i];
    if (of.attention) {
      layer.keys = kernels::AlignedBuffer(of.kv_heads * layout.head_keys(of) * sizeof(float));
      layer.values = kernels::AlignedBuffer(of.kv_heads * layout.head_values(of) * sizeof(float));
    } else {
      layer.recurrent = kernels::AlignedBuffer(layout.ring_slots * of.state * sizeof(float));
      layer.conv = kernels::AlignedBuffer(of.conv_rows * of.conv_width * sizeof(float));
    }
  }
}

float* HybridState::recurrent(std::size_t layer, std::size_t ahead) {
  const std::size_t slot = (slot_ + ahead) % layout_.ring_slots;
  return floats(layers_[layer].recurrent) + slot * layout_.layers[layer].state;
}

float* HybridState::conv_row(std::size_t layer, std::size_t position) {
  return floats(layers_[layer].conv) +
         position % conv_rows(layer) * layout_.layers[layer].conv_width;
}

float* HybridState::keys(std::size_t layer, std::size_t head) {
  return floats(layers_[layer].keys) + head * layout_.head_keys(layout_.layers[layer]);
}

float* HybridState::values(std::size_t layer, std::size_t head) {
  return floats(layers_[layer].values) + head * layout_.head_values(layout_.layers[layer]);
}

void HybridState::advance(std::size_t tokens, bool checkpoints) {
  const bool every_token = checkpoints || tokens == 1;
  assert(!every_token || tokens <= layout_.ring_slots);
  slot_ = (slot_ + (every_token ? tokens : 1)) % layout_.ring_slots;
  position_ += tokens;
  // A slot that a later token has overwritten is gone: the ring remembers ring_slots - 1 steps.
  rollback_limit_ = every_token ? std::min(rollback_limit_ + tokens, layout_.ring_slots - 1) : 0;
}

void HybridState::rollback(std::size_t tokens) {
  assert(tokens <= rollback_limit_);
  // Once around at most: a comparison is several times cheaper than the division of a modulo.
  slot_ = slot_ >= tokens ? slot_ - tokens : slot_ + layout_.ring_slots - tokens;
  position_ -= tokens;
  rollback_limit_ -= tokens;
}

void HybridState::reset() {
  position_ = 0;
  rollback_limit_ = 0;
  slot_ = 0;
  for (std::size_t i = 0; i < layers_.size(); ++i) {
    if (!layout_.layers[i].attention) {
      std::memset(recurrent(i, 0), 0, layout_.layers[i].state * sizeof(float));
    }
  }
}

void HybridState::copy_from(const SequenceState& other) {
  const auto& from = dynamic_cast<const HybridState&>(other);
  assert(&from.layout_ == &layout_);
  if (&from == this) {
    return;
  }
  position_ = from.position_;
  rollback_limit_ = 0;
  slot_ = 0;
  const std::size_t panel_positions = (position_ + 15) / 16 * 16;
  for (std::size_t i = 0; i < layers_.size(); ++i) {
    const StateLayout::Layer& of = layout_.layers[i];
    const Layer& source = from.layers_[i];
    if (of.attention) {
      for (std::size_t h = 0; h < of.kv_heads; ++h) {
        std::memcpy(keys(i, h), floats(source.keys) + h * layout_.head_keys(of),
                    panel_positions * of.head_dim * sizeof(float));
        std::memcpy(values(i, h), floats(source.values) + h * layout_.head_values(of),
                    position_ * of.head_dim * sizeof(float));
      }
      continue;
    }
    std::memcpy(recurrent(i, 0), floats(source.recurrent) + from.slot_ * of.state,
                of.state * sizeof(float));
    const std::size_t taps_before = std::min(position_, of.taps_before);
    for (std::size_t back = 1; back <= taps_before; ++back) {
      const std::size_t row = (position_ - back) % of.conv_rows;
      std::memcpy(conv_row(i, position_ - back), floats(source.conv) + row * of.conv_width,
                  of.conv_width * sizeof(float));
    }
  }
}

std::size_t HybridState::bytes() const {
  std::size_t total = 0;
  for (const Layer& layer : layers_) {
    total += layer.recurrent.size() + layer.conv.size() + layer.keys.size() + layer.values.size();
  }
  return total;
}

}  // namespace spel::engine
