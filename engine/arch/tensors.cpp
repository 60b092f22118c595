#include "engine/arch/tensors.h"

namespace spel::engine {
namespace {

void append(std::vector<TensorSpec>& all, const LayerTensors& layer) {
  all.insert(all.end(), {layer.input_norm, layer.qkv, layer.out});
  all.insert(all.end(), layer.recurrent.begin(), layer.recurrent.end());
  all.insert(all.end(), {layer.post_norm, layer.gate, layer.up, layer.down});
}

}  // namespace

std::vector<TensorSpec> TensorLayout::in_file_order() const {
  std::vector<TensorSpec> all = {embedding};
  for (const LayerTensors& layer : target) {
    append(all, layer);
  }
  all.push_back(final_norm);
  all.push_back(lm_head);
  for (const LayerTensors& layer : draft) {
    append(all, layer);
  }
  return all;
}

std::string describe(const TensorSpec& tensor) {
  return (tensor.in_draft ? "tensor draft " : "tensor ") + tensor.name;
}

}  // namespace spel::engine
