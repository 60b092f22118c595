#include "kernels/blas.h"

#include <bit>
#include <cstdint>
#include <cstring>

#include "config/base/error.h"

#ifdef SPEL_WITH_BLAS
#include <cblas.h>

// Only OpenBLAS has it; another library keeps to its own environment variable.
extern "C" void openblas_set_num_threads(int threads) __attribute__((weak));
#endif

namespace spel::kernels {

#ifdef SPEL_WITH_BLAS
namespace {

/// The inverse of packing (matrix.cpp): lane r of a panel holds row r; bf16 columns 2j and 2j+1
/// share a 32-bit lane, low half first.
float weight_at(const DenseMatrix& matrix, std::size_t row, std::size_t col) {
  constexpr std::size_t kLanes = DenseMatrix::kPanelRows;
  const std::byte* const panel = matrix.panel(row / kLanes);
  const std::size_t lane = row % kLanes;
  if (matrix.type() == DenseType::kF32) {
    float value = 0.0F;
    std::memcpy(&value, panel + 4 * (col * kLanes + lane), sizeof(value));
    return value;
  }
  std::uint16_t half = 0;
  std::memcpy(&half, panel + 4 * (col / 2 * kLanes + lane) + 2 * (col % 2), sizeof(half));
  return std::bit_cast<float>(std::uint32_t{half} << 16);
}

}  // namespace

bool has_blas() noexcept { return true; }

BlasMatrix::BlasMatrix(const DenseMatrix& matrix)
    : rows_(matrix.rows()), cols_(matrix.cols()), row_major_(rows_ * cols_) {
  for (std::size_t row = 0; row < rows_; ++row) {
    for (std::size_t col = 0; col < cols_; ++col) {
      row_major_[row * cols_ + col] = weight_at(matrix, row, col);
    }
  }
  // The engine has its own pool; a second one inside the library would fight it for the cores.
  if (openblas_set_num_threads != nullptr) openblas_set_num_threads(1);
}

void BlasMatrix::matmul(const float* x, std::size_t x_stride, std::size_t m, float* y,
                        std::size_t y_stride) const {
  cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasTrans, static_cast<int>(m), static_cast<int>(rows_),
              static_cast<int>(cols_), 1.0F, x, static_cast<int>(x_stride), row_major_.data(),
              static_cast<int>(cols_), 0.0F, y, static_cast<int>(y_stride));
}

#else

bool has_blas() noexcept { return false; }

BlasMatrix::BlasMatrix(const DenseMatrix& matrix) : rows_(matrix.rows()), cols_(matrix.cols()) {
  throw Error(ErrorCode::kInvalidArgument,
              "numerics fast: this build has no BLAS; configure with -DSPEL_WITH_BLAS=ON");
}

void BlasMatrix::matmul(const float* /*x*/, std::size_t /*x_stride*/, std::size_t /*m*/,
                        float* /*y*/, std::size_t /*y_stride*/) const {}

#endif

}  // namespace spel::kernels
