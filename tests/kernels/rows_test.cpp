#include <gtest/gtest.h>
#include <limits>

#include "kernels/scalar_math.h"
#include "tests/kernels/support.h"

namespace spel::kernels {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

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

TEST(RmsNorm, EverySetGivesTheDocumentedOrder) {
  Random random(21);
  SCOPED_TRACE(random.trace());
  for (const std::size_t n : kOddSizes) {
    const auto x = random.normals(n);
    const auto w = random.normals(n);
    const float squares =
        lane_sum(n, [&](float sum, std::size_t i) { return std::fma(x[i], x[i], sum); });
    const float inverse = 1.0F / std::sqrt(squares / static_cast<float>(n) + 1e-5F);
    std::vector<float> expected(n);
    for (std::size_t i = 0; i < n; ++i) {
      expected[i] = x[i] * inverse * w[i];
    }
    for (const Kernels& kernels : KernelRegistry::attainable()) {
      std::vector<float> y(n);
      kernels.rms_norm(x.data(), w.data(), n, 1e-5F, y.data());
      EXPECT_TRUE(same_bytes(expected, y)) << kernels.variant() << " n=" << n;
      std::vector<float> in_place = x;
      kernels.rms_norm(in_place.data(), w.data(), n, 1e-5F, in_place.data());
      EXPECT_TRUE(same_bytes(expected, in_place)) << kernels.variant() << " in place, n=" << n;
    }
  }
}

TEST(L2Normalize, EverySetGivesUnitRowsOfTheSameBits) {
  Random random(22);
  SCOPED_TRACE(random.trace());
  for (const std::size_t dim : kOddSizes) {
    const auto x = random.normals(3 * dim);
    expect_same_on_every_set([&](const Kernels& kernels) {
      auto y = x;
      kernels.l2_normalize(y.data(), 3, dim, 1e-6F);
      double norm = 0.0;
      for (std::size_t i = 0; i < dim; ++i) {
        norm += static_cast<double>(y[i]) * y[i];
      }
      EXPECT_NEAR(norm, 1.0, 0.02) << "dim=" << dim;
      return y;
    });
  }
}

TEST(Rope, EverySetTurnsInterleavedPairs) {
  Random random(23);
  SCOPED_TRACE(random.trace());
  for (const std::size_t dim : {2U, 6U, 16U, 18U, 34U, 64U, 128U}) {
    const auto x = random.normals(2 * dim);
    const auto c = random.normals(dim / 2);
    const auto s = random.normals(dim / 2);
    std::vector<float> expected(x.size());
    for (std::size_t i = 0; i < x.size(); i += 2) {
      const std::size_t pair = i % dim / 2;
      expected[i] = std::fma(x[i], c[pair], -(x[i + 1] * s[pair]));
      expected[i + 1] = std::fma(x[i + 1], c[pair], x[i] * s[pair]);
    }
    for (const Kernels& kernels : KernelRegistry::attainable()) {
      auto y = x;
      kernels.rope(y.data(), 2, dim, c.data(), s.data());
      EXPECT_TRUE(same_bytes(expected, y)) << kernels.variant() << " dim=" << dim;
    }
  }
}

TEST(ShortConv, EverySetSumsTheTapsOldestFirst) {
  Random random(24);
  SCOPED_TRACE(random.trace());
  for (const std::size_t n : kOddSizes) {
    for (const std::size_t taps : {1U, 3U, 4U}) {
      const auto x = random.normals(taps * n);
      const auto w = random.normals(taps * n);
      std::vector<const float*> rows;
      for (std::size_t t = 0; t < taps; ++t) {
        rows.push_back(x.data() + t * n);
      }
      std::vector<float> expected(n);
      for (std::size_t t = 0; t < taps; ++t) {
        for (std::size_t i = 0; i < n; ++i) {
          expected[i] = std::fma(x[t * n + i], w[t * n + i], expected[i]);
        }
      }
      for (const Kernels& kernels : KernelRegistry::attainable()) {
        std::vector<float> y(n);
        kernels.short_conv(rows.data(), w.data(), taps, n, y.data());
        EXPECT_TRUE(same_bytes(expected, y)) << kernels.variant() << " n=" << n;
      }
    }
  }
}

TEST(Activations, EverySetGivesTheScalarFunctions) {
  Random random(25);
  SCOPED_TRACE(random.trace());
  for (const std::size_t n : kOddSizes) {
    auto x = random.normals(n, 8.0F);
    const auto up = random.normals(n);
    const float special[] = {0.0F, -0.0F, 104.0F, -104.0F, 89.0F, -89.0F, kInf};
    for (std::size_t i = 0; i < std::size(special) && i < n; ++i) {
      x[n - 1 - i] = special[i];
    }
    std::vector<float> expected_sigmoid(n), expected_silu(n), expected_silu_mul(n);
    for (std::size_t i = 0; i < n; ++i) {
      expected_sigmoid[i] = sigmoid_f32(x[i]);
      expected_silu[i] = x[i] / (1.0F + exp_f32(0.0F - x[i]));
      expected_silu_mul[i] = expected_silu[i] * up[i];
    }
    for (const Kernels& kernels : KernelRegistry::attainable()) {
      std::vector<float> y(n);
      kernels.sigmoid(x.data(), n, y.data());
      EXPECT_TRUE(same_bytes(expected_sigmoid, y)) << kernels.variant() << " n=" << n;
      kernels.silu(x.data(), n, y.data());
      EXPECT_TRUE(same_bytes(expected_silu, y)) << kernels.variant() << " n=" << n;
      kernels.silu_mul(x.data(), up.data(), n, y.data());
      EXPECT_TRUE(same_bytes(expected_silu_mul, y)) << kernels.variant() << " n=" << n;
    }
  }
}

TEST(Add, EverySetAddsInPlace) {
  Random random(26);
  SCOPED_TRACE(random.trace());
  for (const std::size_t n : kOddSizes) {
    const auto x = random.normals(n);
    const auto y = random.normals(n);
    expect_same_on_every_set([&](const Kernels& kernels) {
      auto sum = x;
      kernels.add(sum.data(), y.data(), n);
      EXPECT_EQ(sum[n - 1], x[n - 1] + y[n - 1]);
      return sum;
    });
  }
}

TEST(ExpSum, EverySetGivesTheScalarExpAndTheLaneSum) {
  Random random(27);
  SCOPED_TRACE(random.trace());
  for (const std::size_t n : kOddSizes) {
    const auto x = random.normals(n, 5.0F);
    float top = -kInf;
    for (const float v : x) {
      top = std::max(top, v);
    }
    std::vector<float> expected(n);
    for (std::size_t i = 0; i < n; ++i) {
      expected[i] = exp_f32(x[i] - top);
    }
    const float sum = lane_sum(n, [&](float acc, std::size_t i) { return acc + expected[i]; });
    for (const Kernels& kernels : KernelRegistry::attainable()) {
      std::vector<float> p(n);
      float max = 0.0F;
      EXPECT_EQ(kernels.exp_sum(x.data(), n, p.data(), &max), sum)
          << kernels.variant() << " n=" << n;
      EXPECT_EQ(max, top);
      EXPECT_TRUE(same_bytes(expected, p)) << kernels.variant() << " n=" << n;
    }
  }
}

TEST(Argmax, TakesTheLowestIndexOnATieAndNeverNan) {
  struct Case {
    std::vector<float> x;
    std::size_t expected;
  };
  std::vector<float> wide(100, 1.0F);
  wide[70] = wide[37] = 2.0F;
  std::vector<float> wide_nan(100, kNan);
  wide_nan[99] = -5.0F;
  const Case cases[] = {
      {{1.0F}, 0},       {{1.0F, 3.0F, 3.0F}, 1}, {{kNan, -1.0F, kNan}, 1}, {{kNan, -kInf}, 1},
      {{kNan, kNan}, 0}, {{-kInf, -kInf}, 0},     {{0.0F, kInf, kInf}, 1},  {{-0.0F, 0.0F}, 0},
      {wide, 37},        {wide_nan, 99}};
  for (const Case& c : cases) {
    for (const Kernels& kernels : KernelRegistry::attainable()) {
      EXPECT_EQ(kernels.argmax(c.x.data(), c.x.size()), c.expected)
          << kernels.variant() << " n=" << c.x.size();
    }
  }
}

}  // namespace
}  // namespace spel::kernels
