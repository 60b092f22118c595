// Matrix products through a CBLAS library, where this build has one: numerics=fast.
//
// The library chooses its order of summation, by shape and by machine, so a row's result depends on
// the company it is computed in. It is here to be compared with.
#pragma once

#include <cstddef>
#include <vector>

#include "kernels/matrix.h"

namespace spel::kernels {

/// Whether this build has a BLAS.
[[nodiscard]] bool has_blas() noexcept;

/// A row-major f32 copy of a matrix: BLAS reads no panels. Thread-safe once built.
class BlasMatrix {
 public:
  /// Throws Error(kInvalidArgument) in a build without a BLAS.
  explicit BlasMatrix(const DenseMatrix& matrix);

  /// y[i][r] = W x[i] for i < m, on the calling thread; strides as in Kernels::matmul().
  void matmul(const float* x, std::size_t x_stride, std::size_t m, float* y,
              std::size_t y_stride) const;

 private:
  std::size_t rows_;
  std::size_t cols_;
  std::vector<float> row_major_;
};

}  // namespace spel::kernels
