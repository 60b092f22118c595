#include "engine/model/fast_projections.h"

namespace spel::engine {

FastProjections::FastProjections(const ModelWeights& weights) {
  const auto add = [this](const kernels::DenseMatrix& matrix) {
    copies_.emplace(&matrix, kernels::BlasMatrix(matrix));
  };
  for (const TargetLayer& layer : weights.target) {
    add(layer.qkv);
    add(layer.out);
    add(layer.gate_up);
    add(layer.down);
  }
  add(weights.shared.lm_head);
}

}  // namespace spel::engine
