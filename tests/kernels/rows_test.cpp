#include <gtest/gtest.h>
#include <limits>

#include "kernels/scalar_math.h"
#include "tests/kernels/support.h"

namespace spel::kernels {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

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

TEST(RopeHalves, EverySetTurnsPairsHalfTheRotaryPartApartAndLeavesTheRest) {
  Random random(28);
  SCOPED_TRACE(random.trace());
  constexpr std::size_t kHeads = 3;
  for (const std::size_t half : {1U, 4U, 16U, 32U, 37U}) {
    const std::size_t stride = 2 * half + 5;
    auto x = random.normals(kHeads * stride);
    auto c = random.normals(half);
    const auto s = random.normals(half);
    // A product of -0 and one of +0 taken from it: -0 stays.
    x[0] = -0.0F;
    c[0] = std::abs(c[0]);
    x[half] = s[0] < 0.0F ? -0.0F : 0.0F;
    auto expected = x;
    for (std::size_t h = 0; h < kHeads; ++h) {
      for (std::size_t i = 0; i < half; ++i) {
        const float x0 = x[h * stride + i];
        const float x1 = x[h * stride + half + i];
        expected[h * stride + i] = std::fma(x0, c[i], -(x1 * s[i]));
        expected[h * stride + half + i] = std::fma(x1, c[i], x0 * s[i]);
      }
    }
    EXPECT_TRUE(std::signbit(expected[0]));
    for (const Kernels& kernels : KernelRegistry::attainable()) {
      auto y = x;
      kernels.rope_halves(y.data(), kHeads, stride, 2 * half, c.data(), s.data());
      EXPECT_TRUE(same_bytes(expected, y)) << kernels.variant() << " half=" << half;
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
    std::vector<float> expected_sigmoid(n), expected_silu(n), expected_silu_mul(n),
        expected_sigmoid_mul(n);
    for (std::size_t i = 0; i < n; ++i) {
      expected_sigmoid[i] = sigmoid_f32(x[i]);
      expected_silu[i] = x[i] / (1.0F + exp_f32(0.0F - x[i]));
      expected_silu_mul[i] = expected_silu[i] * up[i];
      expected_sigmoid_mul[i] = expected_sigmoid[i] * up[i];
    }
    for (const Kernels& kernels : KernelRegistry::attainable()) {
      std::vector<float> y(n);
      kernels.sigmoid(x.data(), n, y.data());
      EXPECT_TRUE(same_bytes(expected_sigmoid, y)) << kernels.variant() << " n=" << n;
      kernels.silu(x.data(), n, y.data());
      EXPECT_TRUE(same_bytes(expected_silu, y)) << kernels.variant() << " n=" << n;
      kernels.silu_mul(x.data(), up.data(), n, y.data());
      EXPECT_TRUE(same_bytes(expected_silu_mul, y)) << kernels.variant() << " n=" << n;
      y = up;
      kernels.sigmoid_mul(x.data(), y.data(), n, y.data());
      EXPECT_TRUE(same_bytes(expected_sigmoid_mul, y)) << kernels.variant() << " n=" << n;
    }
  }
}

/// The sequence of NUMERICS.md.
float softplus(float x) {
  const float y = exp_f32(0.0F - std::abs(x));
  const float s = y / (2.0F + y);
  const float z = s * s;
  float p = 2.0F / 15.0F;
  for (const float n : {13.0F, 11.0F, 9.0F, 7.0F, 5.0F, 3.0F}) {
    p = std::fma(p, z, 2.0F / n);
  }
  return std::max(x, 0.0F) + std::fma(s, p * z - y, y);
}

TEST(Softplus, IsWithinTwoUlp) {
  double worst = 0.0;
  for (float x = -103.0F; x < 40.0F; x += 0.00037F) {
    const auto wide = static_cast<long double>(x);
    const long double expected = std::max(wide, 0.0L) + std::log1p(std::exp(-std::fabs(wide)));
    worst = std::max(worst, ulps(softplus(x), expected));
  }
  EXPECT_LE(worst, 2.0);
  for (const float x : {17.0F, 20.0F, 1e5F, kInf}) {
    EXPECT_EQ(softplus(x), x);
  }
  EXPECT_EQ(softplus(-105.0F), 0.0F);
  EXPECT_EQ(softplus(-kInf), 0.0F);
}

TEST(DeltaGates, EverySetGivesTheDocumentedOrder) {
  Random random(29);
  SCOPED_TRACE(random.trace());
  for (const std::size_t heads : {1U, 6U, 16U, 17U, 48U, 300U}) {
    auto a = random.normals(heads, 30.0F);
    const auto b = random.normals(heads, 10.0F);
    const auto bias = random.normals(heads, 3.0F);
    auto rate = random.normals(heads, 3.0F);
    const float special[] = {0.0F, -104.0F, 20.0F, kInf, -kInf, kNan, 1e-40F};
    for (std::size_t i = 0; i < std::size(special) && i < heads; ++i) {
      a[heads - 1 - i] = special[i];
    }
    std::vector<float> expected_decay(heads), expected_write(heads);
    for (std::size_t h = 0; h < heads; ++h) {
      rate[h] = std::abs(rate[h]);
      expected_decay[h] = exp_f32(0.0F - rate[h] * softplus(a[h] + bias[h]));
      expected_write[h] = 2.0F * sigmoid_f32(b[h]);
    }
    for (const Kernels& kernels : KernelRegistry::attainable()) {
      std::vector<float> decay(heads), write(heads);
      kernels.delta_gates(a.data(), b.data(), rate.data(), bias.data(), heads, 2.0F, decay.data(),
                          write.data());
      for (std::size_t h = 0; h < heads; ++h) {
        if (std::isnan(a[h])) {  // Of which no bits are promised.
          EXPECT_TRUE(std::isnan(decay[h])) << kernels.variant();
          decay[h] = expected_decay[h];
        }
      }
      EXPECT_TRUE(same_bytes(expected_decay, decay)) << kernels.variant() << " heads=" << heads;
      EXPECT_TRUE(same_bytes(expected_write, write)) << kernels.variant() << " heads=" << heads;
    }
  }
}

TEST(DeltaGates, AreExpOfMinusRateTimesSoftplusAndAScaledSigmoid) {
  std::vector<float> a, b, rate, bias;
  for (float x = -110.0F; x <= 110.0F; x += 0.037F) {
    a.push_back(x);
    b.push_back(-x / 3.0F);
    bias.push_back(x / 7.0F);
    rate.push_back(std::exp(-6.0F + 7.0F * std::abs(std::sin(x))));
  }
  std::vector<float> decay(a.size()), write(a.size());
  Kernels::select().delta_gates(a.data(), b.data(), rate.data(), bias.data(), a.size(), 2.0F,
                                decay.data(), write.data());
  double worst_decay = 0.0;
  double worst_write = 0.0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    const auto x = static_cast<long double>(a[i] + bias[i]);
    const long double exponent =
        rate[i] * (std::max(x, 0.0L) + std::log1p(std::exp(-std::fabs(x))));
    // An ulp of the exponent is this many of the result.
    const double grown = 1.0 + static_cast<double>(exponent);
    worst_decay = std::max(worst_decay, ulps(decay[i], std::exp(-exponent)) / grown);
    worst_write = std::max(
        worst_write, ulps(write[i], 2.0L / (1.0L + std::exp(-static_cast<long double>(b[i])))));
  }
  EXPECT_LE(worst_decay, 4.0);
  EXPECT_LE(worst_write, 4.0);
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
