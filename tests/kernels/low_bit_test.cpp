#include <algorithm>
#include <gtest/gtest.h>
#include <limits>

#include "config/base/error.h"
#include "tests/kernels/support.h"

namespace spel::kernels {
namespace {

constexpr TernaryKernel kTernaryKernels[] = {TernaryKernel::kDotprod, TernaryKernel::kAddsub,
                                             TernaryKernel::kScalar};

/// Packed codes, scales and the weights they stand for.
struct Ternary {
  Ternary(Random& random, std::size_t rows_in, std::size_t cols_in)
      : rows(rows_in), cols(cols_in), packed(rows * cols / 4), scales(rows), weights(rows * cols) {
    constexpr int kWeightOfCode[4] = {0, 1, 0, -1};
    for (std::size_t i = 0; i < weights.size(); ++i) {
      const int code = random.integer(0, 3);
      packed[i / 4] = static_cast<std::uint8_t>(packed[i / 4] | (code << (2 * (i % 4))));
      weights[i] = kWeightOfCode[code];
    }
    for (float& s : scales) {
      s = std::abs(random.normal());
    }
  }
  [[nodiscard]] TernaryMatrix matrix() const { return {packed, scales, rows, cols}; }

  std::size_t rows, cols;
  std::vector<std::uint8_t> packed;
  std::vector<float> scales;
  std::vector<int> weights;
};

/// float(integer dot) * (row scale * activation scale), as the header says.
template <class Weight>
std::vector<float> defined_product(const std::vector<Weight>& w, const std::vector<float>& scales,
                                   std::size_t rows, std::size_t cols, const QuantizedBatch& x,
                                   std::size_t m) {
  std::vector<float> y(m * rows);
  for (std::size_t i = 0; i < m; ++i) {
    for (std::size_t r = 0; r < rows; ++r) {
      std::int32_t sum = 0;
      for (std::size_t k = 0; k < cols; ++k) {
        sum += static_cast<std::int32_t>(w[r * cols + k]) * x.values[i * x.stride + k];
      }
      y[i * rows + r] = static_cast<float>(sum) * (scales[r] * x.scales[i]);
    }
  }
  return y;
}

TEST(TernaryMatmul, EverySetAndKernelGivesTheExactIntegerDot) {
  Random random(11);
  SCOPED_TRACE(random.trace());
  ThreadPool pool(1);
  for (const std::size_t rows : {1U, 15U, 16U, 17U, 65U, 130U}) {
    for (const std::size_t cols : {4U, 12U, 16U, 20U, 64U, 68U, 384U, 1024U}) {
      const Ternary ternary(random, rows, cols);
      const TernaryMatrix w = ternary.matrix();
      for (const std::size_t m : {1U, 2U, 3U, 5U, 8U, 17U}) {
        QuantizedBatch x(reference_kernels(), random.normals(m * cols), m, cols);
        const auto expected = defined_product(ternary.weights, ternary.scales, rows, cols, x, m);
        for (const Kernels& kernels : KernelRegistry::attainable()) {
          for (const TernaryKernel kernel : kTernaryKernels) {
            std::vector<float> y(m * rows);
            kernels.matmul(pool, w, x.rows(), m, y.data(), rows, kernel);
            EXPECT_TRUE(same_bytes(expected, y))
                << kernels.variant() << " " << ternary_kernel_name(kernel) << " " << rows << "x"
                << cols << " m=" << m;
          }
        }
      }
    }
  }
}

TEST(TernaryMatmul, ARowDoesNotDependOnBatchOrThreads) {
  Random random(12);
  SCOPED_TRACE(random.trace());
  constexpr std::size_t kRows = 211;
  constexpr std::size_t kCols = 100;
  const Ternary ternary(random, kRows, kCols);
  const TernaryMatrix w = ternary.matrix();
  QuantizedBatch x(reference_kernels(), random.normals(33 * kCols), 33, kCols);
  const auto all = defined_product(ternary.weights, ternary.scales, kRows, kCols, x, 33);
  for (std::size_t threads = 1; threads <= 4; ++threads) {
    ThreadPool pool(threads);
    for (const Kernels& kernels : KernelRegistry::attainable()) {
      for (std::size_t m = 1; m <= 33; ++m) {
        std::vector<float> y(m * kRows);
        kernels.matmul(pool, w, x.rows(), m, y.data(), kRows);
        const std::vector<float> expected(all.begin(),
                                          all.begin() + static_cast<std::ptrdiff_t>(m * kRows));
        EXPECT_TRUE(same_bytes(expected, y))
            << kernels.variant() << " threads=" << threads << " m=" << m;
      }
    }
  }
}

TEST(TernaryMatmul, TheLargestSumsStayExact) {
  // Every product at its largest, through the widest row the model shapes use several times over.
  constexpr std::size_t kCols = 16384;
  for (const std::uint8_t codes : {std::uint8_t{0x55}, std::uint8_t{0xFF}}) {
    const TernaryMatrix w(std::vector<std::uint8_t>(kCols / 4, codes), std::vector<float>{1.0F}, 1,
                          kCols);
    std::vector<std::int8_t> values(kCols, 127);
    float scale = 1.0F;
    ThreadPool pool(1);
    for (const Kernels& kernels : KernelRegistry::attainable()) {
      for (const TernaryKernel kernel : kTernaryKernels) {
        float y = 0.0F;
        kernels.matmul(pool, w, {values.data(), &scale, kCols}, 1, &y, 1, kernel);
        EXPECT_EQ(y, (codes == 0x55 ? 127.0F : -127.0F) * static_cast<float>(kCols))
            << kernels.variant();
      }
    }
  }
}

TEST(TernaryMatmul, CodeTwoDecodesAsZero) {
  const std::vector<std::uint8_t> packed(4, 0xAA);  // Sixteen codes 2.
  const TernaryMatrix w(packed, std::vector<float>{1.0F}, 1, 16);
  std::vector<std::int8_t> values(64, 0);
  std::fill_n(values.begin(), 16, std::int8_t{99});
  float scale = 1.0F;
  ThreadPool pool(1);
  for (const Kernels& kernels : KernelRegistry::attainable()) {
    for (const TernaryKernel kernel : kTernaryKernels) {
      float y = 1.0F;
      kernels.matmul(pool, w, {values.data(), &scale, 64}, 1, &y, 1, kernel);
      EXPECT_EQ(y, 0.0F) << kernels.variant();
    }
  }
}

TEST(TernaryMatrix, MalformedWeightsAreRefused) {
  const std::vector<float> scales(2);
  EXPECT_THROW(TernaryMatrix(std::vector<std::uint8_t>(3), scales, 2, 6), Error);
  EXPECT_THROW(TernaryMatrix(std::vector<std::uint8_t>(3), scales, 2, 8), Error);
  EXPECT_THROW(TernaryMatrix(std::vector<std::uint8_t>(4), std::vector<float>(3), 2, 8), Error);
}

TEST(Int8Matmul, EverySetGivesTheExactIntegerDot) {
  Random random(13);
  SCOPED_TRACE(random.trace());
  for (const std::size_t rows : {1U, 15U, 16U, 17U, 130U}) {
    for (const std::size_t cols : {1U, 3U, 4U, 17U, 64U, 65U, 384U, 1024U}) {
      std::vector<std::int8_t> weights(rows * cols);
      for (auto& v : weights) {
        v = static_cast<std::int8_t>(random.integer(-127, 127));
      }
      std::vector<float> scales(rows);
      for (float& s : scales) {
        s = std::abs(random.normal());
      }
      const Int8Matrix w(weights, scales, rows, cols);
      for (const std::size_t m : {1U, 2U, 5U, 9U, 17U, 33U}) {
        QuantizedBatch x(reference_kernels(), random.normals(m * cols), m, cols);
        const auto expected = defined_product(weights, scales, rows, cols, x, m);
        for (const Kernels& kernels : KernelRegistry::attainable()) {
          for (const std::size_t threads : {1U, 3U}) {
            ThreadPool pool(threads);
            std::vector<float> y(m * rows);
            kernels.matmul(pool, w, x.rows(), m, y.data(), rows);
            EXPECT_TRUE(same_bytes(expected, y))
                << kernels.variant() << " " << rows << "x" << cols << " m=" << m;
          }
        }
      }
    }
  }
}

TEST(Int8Matmul, TheLargestSumsStayExact) {
  constexpr std::size_t kCols = 8192;
  for (const int sign : {1, -1}) {
    const std::vector<std::int8_t> weights(kCols, static_cast<std::int8_t>(127 * sign));
    const Int8Matrix w(weights, std::vector<float>{1.0F}, 1, kCols);
    std::vector<std::int8_t> values(kCols, 127);
    float scale = 1.0F;
    ThreadPool pool(1);
    for (const Kernels& kernels : KernelRegistry::attainable()) {
      float y = 0.0F;
      kernels.matmul(pool, w, {values.data(), &scale, kCols}, 1, &y, 1);
      EXPECT_EQ(y, static_cast<float>(127 * 127 * sign) * static_cast<float>(kCols))
          << kernels.variant();
    }
  }
}

TEST(Int8Matrix, MinusOneHundredTwentyEightIsRefused) {
  EXPECT_THROW(Int8Matrix(std::vector<std::int8_t>{-128}, std::vector<float>{1.0F}, 1, 1), Error);
}

TEST(QuantizeRow, EverySetGivesTheSameBytesAndScale) {
  Random random(14);
  SCOPED_TRACE(random.trace());
  for (const std::size_t n : kOddSizes) {
    const auto x = random.normals(n);
    const std::size_t stride = (n + 63) / 64 * 64;
    float expected_scale = 0.0F;
    std::vector<std::int8_t> expected(stride, 1);
    reference_kernels().quantize_row(x.data(), n, expected.data(), stride, &expected_scale);
    for (const Kernels& kernels : KernelRegistry::attainable()) {
      float scale = 0.0F;
      std::vector<std::int8_t> q(stride, 1);
      kernels.quantize_row(x.data(), n, q.data(), stride, &scale);
      EXPECT_TRUE(same_bytes(expected, q)) << kernels.variant() << " n=" << n;
      EXPECT_EQ(expected_scale, scale) << kernels.variant() << " n=" << n;
    }
  }
}

TEST(QuantizeRow, HalvesRoundToEven) {
  // The largest value 127 makes the scale exactly 1.
  const std::vector<float> x = {127.0F, 0.5F, 1.5F, 2.5F, -0.5F, -1.5F, -2.5F, 3.49F, -126.5F};
  const std::vector<std::int8_t> expected = {127, 0, 2, 2, 0, -2, -2, 3, -126};
  for (const Kernels& kernels : KernelRegistry::attainable()) {
    std::vector<std::int8_t> q(64, 9);
    float scale = 0.0F;
    kernels.quantize_row(x.data(), x.size(), q.data(), q.size(), &scale);
    EXPECT_EQ(scale, 1.0F);
    EXPECT_TRUE(std::equal(expected.begin(), expected.end(), q.begin())) << kernels.variant();
    EXPECT_TRUE(std::all_of(q.begin() + 9, q.end(), [](std::int8_t v) { return v == 0; }));
  }
}

TEST(QuantizeRow, ARowOfZerosHasTheSmallestScale) {
  for (const Kernels& kernels : KernelRegistry::attainable()) {
    const std::vector<float> x(20, 0.0F);
    std::vector<std::int8_t> q(64, 9);
    float scale = 0.0F;
    kernels.quantize_row(x.data(), x.size(), q.data(), q.size(), &scale);
    EXPECT_EQ(scale, 1e-12F);
    EXPECT_TRUE(std::all_of(q.begin(), q.end(), [](std::int8_t v) { return v == 0; }));
  }
}

TEST(QuantizeRow, NanDoesNotReachTheScale) {
  std::vector<float> x(40, 2.0F);
  x[3] = x[33] = std::numeric_limits<float>::quiet_NaN();
  for (const Kernels& kernels : KernelRegistry::attainable()) {
    std::vector<std::int8_t> q(64);
    float scale = 0.0F;
    kernels.quantize_row(x.data(), x.size(), q.data(), q.size(), &scale);
    EXPECT_EQ(scale, 2.0F / 127.0F) << kernels.variant();
    EXPECT_EQ(q[0], 127);
    EXPECT_EQ(q[3], -127);
    EXPECT_EQ(q[33], -127);
  }
}

}  // namespace
}  // namespace spel::kernels
