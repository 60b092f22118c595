#include "engine/model/fast_projections.h"

#include <variant>

namespace spel::engine {

FastProjections::FastProjections(const ModelWeights& weights) {
  const auto add = [this](const kernels::DenseMatrix& matrix) {
    copies_.emplace(&matrix, kernels::BlasMatrix(matrix));
  };
  for_each_matrix(weights.target, [&](const kernels::Matrix& matrix) {
    if (const auto* dense = std::get_if<kernels::DenseMatrix>(&matrix)) {
      add(*dense);
    }
  });
  add(weights.shared.lm_head);
}

}  // namespace spel::engine
