// What the kernel tests share: every attainable set, seeded random data, comparison by bytes.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <gtest/gtest.h>
#include <limits>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "kernels/registry.h"

namespace spel::kernels {

/// Sizes around every vector width, and the two model widths.
inline constexpr std::size_t kOddSizes[] = {1, 2, 15, 16, 17, 31, 33, 63, 65, 130, 384, 1024};

/// The plainest set: what the others are compared with.
inline const Kernels& reference_kernels() { return KernelRegistry::attainable().back(); }

/// A seeded source of test values; on failure the seed is in the trace.
class Random {
 public:
  explicit Random(std::uint32_t seed) : seed_(seed), engine_(seed) {}

  [[nodiscard]] std::string trace() const { return "seed " + std::to_string(seed_); }
  float normal(float deviation = 1.0F) {
    return std::normal_distribution<float>(0.0F, deviation)(engine_);
  }
  int integer(int low, int high) { return std::uniform_int_distribution<int>(low, high)(engine_); }
  std::vector<float> normals(std::size_t n, float deviation = 1.0F) {
    std::vector<float> values(n);
    for (float& v : values) {
      v = normal(deviation);
    }
    return values;
  }

 private:
  std::uint32_t seed_;
  std::mt19937 engine_;
};

inline float to_bf16_exact(float x) {
  return std::bit_cast<float>(std::bit_cast<std::uint32_t>(x) & 0xFFFF0000U);
}

template <class T>
[[nodiscard]] ::testing::AssertionResult same_bytes(const std::vector<T>& expected,
                                                    const std::vector<T>& found) {
  if (expected.size() != found.size()) {
    return ::testing::AssertionFailure() << "sizes differ";
  }
  for (std::size_t i = 0; i < expected.size(); ++i) {
    if (std::memcmp(&expected[i], &found[i], sizeof(T)) != 0) {
      return ::testing::AssertionFailure()
             << "element " << i << " of " << expected.size() << ": expected "
             << static_cast<double>(expected[i]) << ", found " << static_cast<double>(found[i]);
    }
  }
  return ::testing::AssertionSuccess();
}

/// Runs `make(kernels)` (a vector) on every attainable set and compares it with the reference's.
template <class Make>
void expect_same_on_every_set(Make make) {
  const auto expected = make(reference_kernels());
  for (const Kernels& kernels : KernelRegistry::attainable()) {
    EXPECT_TRUE(same_bytes(expected, make(kernels))) << kernels.variant();
  }
}

/// sum over lanes i mod 16 in order, then the tree of NUMERICS.md.
template <class Accumulate>
float lane_sum(std::size_t n, Accumulate accumulate) {
  float lanes[16] = {};
  for (std::size_t i = 0; i < n; ++i) {
    lanes[i % 16] = accumulate(lanes[i % 16], i);
  }
  for (std::size_t half = 8; half > 0; half /= 2) {
    for (std::size_t l = 0; l < half; ++l) {
      lanes[l] += lanes[l + half];
    }
  }
  return lanes[0];
}

/// |found - expected| in units of the last place of `expected`.
template <class Float>
double ulps(Float found, long double expected) {
  const auto rounded = static_cast<Float>(expected);
  const Float next = std::nextafter(rounded, std::numeric_limits<Float>::infinity());
  const long double unit = static_cast<long double>(next) - static_cast<long double>(rounded);
  return static_cast<double>(std::fabs(static_cast<long double>(found) - expected) / unit);
}

/// int8 rows with the storage they point into.
struct QuantizedBatch {
  QuantizedBatch(const Kernels& kernels, const std::vector<float>& x, std::size_t m,
                 std::size_t cols)
      : stride((cols + 63) / 64 * 64), values(m * stride), scales(m) {
    for (std::size_t i = 0; i < m; ++i) {
      kernels.quantize_row(x.data() + i * cols, cols, values.data() + i * stride, stride,
                           &scales[i]);
    }
  }
  [[nodiscard]] QuantizedRows rows() { return {values.data(), scales.data(), stride}; }

  std::size_t stride;
  std::vector<std::int8_t> values;
  std::vector<float> scales;
};

}  // namespace spel::kernels
