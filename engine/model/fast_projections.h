// The target's matrices as a BLAS wants them, beside the packed ones: numerics=fast.
#pragma once

#include <unordered_map>

#include "engine/model/weights.h"
#include "kernels/blas.h"

namespace spel::engine {

/// Empty, or a copy of every dense matrix of a model. Immutable once built.
class FastProjections {
 public:
  FastProjections() = default;
  /// `weights` must outlive this. Throws Error(kInvalidArgument) in a build without a BLAS.
  explicit FastProjections(const ModelWeights& weights);

  /// nullptr when empty.
  [[nodiscard]] const kernels::BlasMatrix* find(const kernels::DenseMatrix& matrix) const {
    const auto at = copies_.find(&matrix);
    return at == copies_.end() ? nullptr : &at->second;
  }

 private:
  std::unordered_map<const kernels::DenseMatrix*, kernels::BlasMatrix> copies_;
};

}  // namespace spel::engine
