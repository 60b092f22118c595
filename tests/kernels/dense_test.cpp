#include <gtest/gtest.h>

#include "config/base/error.h"
#include "tests/kernels/support.h"

namespace spel::kernels {
namespace {

struct Shape {
  std::size_t rows;
  std::size_t cols;
};
constexpr Shape kShapes[] = {{1, 1},   {15, 1},  {16, 16}, {17, 15},   {33, 17},    {63, 65},
                             {65, 63}, {130, 7}, {48, 64}, {384, 384}, {130, 1024}, {257, 130}};

std::vector<float> multiply(const Kernels& kernels, std::size_t threads, const DenseMatrix& w,
                            const std::vector<float>& x, std::size_t m) {
  ThreadPool pool(threads);
  std::vector<float> y(m * w.rows());
  kernels.matmul(pool, w, x.data(), w.cols(), m, y.data(), w.rows());
  return y;
}

/// The definition: one chain of fused multiply-adds per output, from +0, in column order.
std::vector<float> defined_product(const std::vector<float>& w, Shape shape,
                                   const std::vector<float>& x, std::size_t m) {
  std::vector<float> y(m * shape.rows);
  for (std::size_t i = 0; i < m; ++i) {
    for (std::size_t r = 0; r < shape.rows; ++r) {
      float sum = 0.0F;
      for (std::size_t k = 0; k < shape.cols; ++k) {
        sum = std::fma(x[i * shape.cols + k], w[r * shape.cols + k], sum);
      }
      y[i * shape.rows + r] = sum;
    }
  }
  return y;
}

std::vector<float> bf16_exact_weights(Random& random, Shape shape) {
  auto w = random.normals(shape.rows * shape.cols);
  for (float& v : w) {
    v = to_bf16_exact(v);
  }
  return w;
}

TEST(DenseMatmul, EverySetGivesTheDefinedChain) {
  Random random(1);
  SCOPED_TRACE(random.trace());
  for (const Shape shape : kShapes) {
    const auto weights = random.normals(shape.rows * shape.cols);
    const DenseMatrix w(weights, shape.rows, shape.cols, DenseType::kF32);
    for (const std::size_t m : {1U, 2U, 5U, 9U, 17U}) {
      const auto x = random.normals(m * shape.cols);
      const auto expected = defined_product(weights, shape, x, m);
      for (const Kernels& kernels : KernelRegistry::attainable()) {
        EXPECT_TRUE(same_bytes(expected, multiply(kernels, 1, w, x, m)))
            << kernels.variant() << " " << shape.rows << "x" << shape.cols << " m=" << m;
      }
    }
  }
}

TEST(DenseMatmul, ARowDoesNotDependOnTheBatchItIsIn) {
  Random random(2);
  SCOPED_TRACE(random.trace());
  constexpr Shape kShape = {67, 49};
  for (const DenseType type : {DenseType::kF32, DenseType::kBf16}) {
    const DenseMatrix w(bf16_exact_weights(random, kShape), kShape.rows, kShape.cols, type);
    const auto x = random.normals(33 * kShape.cols);
    for (const Kernels& kernels : KernelRegistry::attainable()) {
      std::vector<float> alone;
      for (std::size_t i = 0; i < 33; ++i) {
        const std::vector<float> row(
            x.begin() + static_cast<std::ptrdiff_t>(i * kShape.cols),
            x.begin() + static_cast<std::ptrdiff_t>((i + 1) * kShape.cols));
        const auto y = multiply(kernels, 1, w, row, 1);
        alone.insert(alone.end(), y.begin(), y.end());
      }
      for (std::size_t m = 1; m <= 33; ++m) {
        const std::vector<float> expected(
            alone.begin(), alone.begin() + static_cast<std::ptrdiff_t>(m * kShape.rows));
        EXPECT_TRUE(same_bytes(expected, multiply(kernels, 1, w, x, m)))
            << kernels.variant() << " m=" << m;
      }
    }
  }
}

TEST(DenseMatmul, ManyRowsThanFitOnePassGiveTheSameBits) {
  Random random(3);
  SCOPED_TRACE(random.trace());
  constexpr Shape kShape = {5, 4096};
  const auto weights = random.normals(kShape.rows * kShape.cols);
  const DenseMatrix w(weights, kShape.rows, kShape.cols, DenseType::kF32);
  constexpr std::size_t kRows = 131;  // More than the scratch holds at this width.
  const auto x = random.normals(kRows * kShape.cols);
  const auto expected = defined_product(weights, kShape, x, kRows);
  for (const Kernels& kernels : KernelRegistry::attainable()) {
    EXPECT_TRUE(same_bytes(expected, multiply(kernels, 1, w, x, kRows))) << kernels.variant();
  }
}

TEST(DenseMatmul, TheNumberOfThreadsChangesNothing) {
  Random random(4);
  SCOPED_TRACE(random.trace());
  constexpr Shape kShape = {403, 65};
  const DenseMatrix w(random.normals(kShape.rows * kShape.cols), kShape.rows, kShape.cols,
                      DenseType::kF32);
  for (const std::size_t m : {1U, 5U, 17U}) {
    const auto x = random.normals(m * kShape.cols);
    const auto expected = multiply(reference_kernels(), 1, w, x, m);
    for (const Kernels& kernels : KernelRegistry::attainable()) {
      for (std::size_t threads = 1; threads <= 4; ++threads) {
        EXPECT_TRUE(same_bytes(expected, multiply(kernels, threads, w, x, m)))
            << kernels.variant() << " threads=" << threads << " m=" << m;
      }
    }
  }
}

TEST(DenseMatmul, Bf16GivesTheBitsOfF32OnBf16ExactWeights) {
  Random random(5);
  SCOPED_TRACE(random.trace());
  for (const Shape shape : kShapes) {
    const auto weights = bf16_exact_weights(random, shape);
    const DenseMatrix f32(weights, shape.rows, shape.cols, DenseType::kF32);
    const DenseMatrix bf16(weights, shape.rows, shape.cols, DenseType::kBf16);
    for (const std::size_t m : {1U, 3U, 13U}) {
      const auto x = random.normals(m * shape.cols);
      const auto expected = multiply(reference_kernels(), 1, f32, x, m);
      for (const Kernels& kernels : KernelRegistry::attainable()) {
        EXPECT_TRUE(same_bytes(expected, multiply(kernels, 1, bf16, x, m)))
            << kernels.variant() << " " << shape.rows << "x" << shape.cols << " m=" << m;
      }
    }
  }
}

TEST(DenseMatmul, ANegativeZeroBeforeTheBf16PaddingStays) {
  // The only product underflows to -0; multiplying in the padding of the odd column would lose it.
  const std::vector<float> weights = {-0x1p-126F};
  const DenseMatrix w(weights, 1, 1, DenseType::kBf16);
  for (const Kernels& kernels : KernelRegistry::attainable()) {
    EXPECT_TRUE(std::signbit(multiply(kernels, 1, w, {0x1p-126F}, 1)[0])) << kernels.variant();
  }
}

TEST(DenseMatmul, StridesLeaveTheGapsAlone) {
  Random random(6);
  SCOPED_TRACE(random.trace());
  constexpr Shape kShape = {19, 21};
  constexpr std::size_t kRows = 5;
  constexpr std::size_t kXStride = 29;
  constexpr std::size_t kYStride = 31;
  const auto weights = random.normals(kShape.rows * kShape.cols);
  const DenseMatrix w(weights, kShape.rows, kShape.cols, DenseType::kF32);
  const auto x = random.normals(kRows * kXStride);
  ThreadPool pool(2);
  for (const Kernels& kernels : KernelRegistry::attainable()) {
    std::vector<float> y(kRows * kYStride, 7.0F);
    kernels.matmul(pool, w, x.data(), kXStride, kRows, y.data(), kYStride);
    for (std::size_t i = 0; i < kRows; ++i) {
      const std::vector<float> row(
          x.begin() + static_cast<std::ptrdiff_t>(i * kXStride),
          x.begin() + static_cast<std::ptrdiff_t>(i * kXStride + kShape.cols));
      auto expected = defined_product(weights, kShape, row, 1);
      expected.resize(kYStride, 7.0F);
      const std::vector<float> found(y.begin() + static_cast<std::ptrdiff_t>(i * kYStride),
                                     y.begin() + static_cast<std::ptrdiff_t>((i + 1) * kYStride));
      EXPECT_TRUE(same_bytes(expected, found)) << kernels.variant() << " row " << i;
    }
  }
}

TEST(DenseMatmul, NoRowsIsNoWork) {
  ThreadPool pool(2);
  const DenseMatrix w(std::vector<float>(6), 2, 3, DenseType::kF32);
  float untouched = 3.0F;
  Kernels::select().matmul(pool, w, nullptr, 3, 0, &untouched, 2);
  EXPECT_EQ(untouched, 3.0F);
}

TEST(DenseMatrix, WeightsThatBf16WouldRoundAreRefused) {
  const std::vector<float> weights = {1.0F, 1.001F};
  EXPECT_NO_THROW(DenseMatrix(weights, 1, 2, DenseType::kF32));
  EXPECT_THROW(DenseMatrix(weights, 1, 2, DenseType::kBf16), Error);
}

TEST(DenseMatrix, AWrongNumberOfWeightsIsRefused) {
  EXPECT_THROW(DenseMatrix(std::vector<float>(5), 2, 3, DenseType::kF32), Error);
}

}  // namespace
}  // namespace spel::kernels
