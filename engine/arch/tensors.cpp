#include "engine/arch/tensors.h"

#include <algorithm>

namespace spel::engine {
namespace {

void append(std::vector<TensorSpec>& all, const LayerTensors& layer) {
  all.push_back(layer.input_norm);
  for (const TensorRows& part : layer.in) {
    // One that is taken apart stands there more than once.
    const auto same = [&](const TensorSpec& other) {
      return other.name == part.tensor.name && other.in_draft == part.tensor.in_draft;
    };
    if (std::ranges::none_of(all, same)) {
      all.push_back(part.tensor);
    }
  }
  all.push_back(layer.out);
  all.insert(all.end(), layer.conv.begin(), layer.conv.end());
  for (const auto* small : {&layer.decay, &layer.write, &layer.decay_rate, &layer.step_bias,
                            &layer.norm, &layer.q_norm, &layer.k_norm}) {
    if (*small) {
      all.push_back(**small);
    }
  }
  all.insert(all.end(), {layer.post_norm, layer.gate, layer.up, layer.down});
}

}  // namespace

std::size_t TensorRows::rows() const {
  if (blocks.empty()) {
    return tensor.rows;
  }
  std::size_t count = 0;
  for (const RowBlock& block : blocks) {
    count += block.count;
  }
  return count;
}

std::vector<TensorSpec> TensorLayout::in_file_order() const {
  std::vector<TensorSpec> all = {embedding};
  for (const LayerTensors& layer : target) {
    append(all, layer);
  }
  all.push_back(final_norm);
  if (lm_head) {
    all.push_back(*lm_head);
  }
  for (const LayerTensors& layer : draft) {
    append(all, layer);
  }
  return all;
}

std::string describe(const TensorSpec& tensor) {
  return (tensor.in_draft ? "tensor draft " : "tensor ") + tensor.name;
}

}  // namespace spel::engine
