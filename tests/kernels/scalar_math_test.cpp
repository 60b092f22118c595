#include "kernels/scalar_math.h"

#include <cmath>
#include <gtest/gtest.h>
#include <limits>

#include "tests/kernels/support.h"

namespace spel::kernels {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();

TEST(ExpF32, IsWithinTwoUlp) {
  double worst = 0.0;
  for (float x = -103.9F; x < 88.72F; x += 0.00137F) {
    worst = std::max(worst, ulps(exp_f32(x), std::exp(static_cast<long double>(x))));
  }
  EXPECT_LE(worst, 2.0);
}

TEST(ExpF32, HasTheRightEnds) {
  EXPECT_EQ(exp_f32(0.0F), 1.0F);
  EXPECT_EQ(exp_f32(-0.0F), 1.0F);
  EXPECT_EQ(exp_f32(-104.0F), 0.0F);
  EXPECT_EQ(exp_f32(-kInf), 0.0F);
  EXPECT_EQ(exp_f32(88.73F), kInf);
  EXPECT_EQ(exp_f32(kInf), kInf);
  EXPECT_LT(exp_f32(88.72F), kInf);
  EXPECT_TRUE(std::isnan(exp_f32(std::numeric_limits<float>::quiet_NaN())));
}

TEST(LogF32, IsWithinTwoUlp) {
  double worst = 0.0;
  for (float x = std::numeric_limits<float>::min(); x < 3e38F; x *= 1.00037F) {
    worst = std::max(worst, ulps(log_f32(x), std::log(static_cast<long double>(x))));
  }
  for (float x = 0.5F; x < 2.0F; x += 1.7e-6F) {
    if (x == 1.0F) {
      continue;
    }
    worst = std::max(worst, ulps(log_f32(x), std::log(static_cast<long double>(x))));
  }
  EXPECT_LE(worst, 2.0);
}

TEST(LogF32, HasTheRightEnds) {
  EXPECT_EQ(log_f32(1.0F), 0.0F);
  EXPECT_EQ(log_f32(0.0F), -kInf);
  EXPECT_EQ(log_f32(kInf), kInf);
  EXPECT_TRUE(std::isnan(log_f32(-1.0F)));
  EXPECT_TRUE(std::isnan(log_f32(std::numeric_limits<float>::quiet_NaN())));
  EXPECT_NEAR(log_f32(std::numeric_limits<float>::denorm_min()), -103.2789F, 1e-4F);
}

TEST(SigmoidF32, IsWithinFourUlp) {
  double worst = 0.0;
  for (float x = -80.0F; x < 80.0F; x += 0.0013F) {
    const long double expected = 1.0L / (1.0L + std::exp(-static_cast<long double>(x)));
    worst = std::max(worst, ulps(sigmoid_f32(x), expected));
  }
  EXPECT_LE(worst, 4.0);
}

TEST(ExpF64AndLogF64, AreWithinTwoUlp) {
  double worst_exp = 0.0;
  for (double x = -700.0; x < 700.0; x += 0.0173) {
    worst_exp = std::max(worst_exp, ulps(exp_f64(x), std::exp(static_cast<long double>(x))));
  }
  EXPECT_LE(worst_exp, 2.0);
  double worst_log = 0.0;
  for (double x = 1e-300; x < 1e300; x *= 1.0173) {
    worst_log = std::max(worst_log, ulps(log_f64(x), std::log(static_cast<long double>(x))));
  }
  for (double x = 0.5; x < 2.0; x += 1.7e-5) {
    if (x == 1.0) {
      continue;
    }
    worst_log = std::max(worst_log, ulps(log_f64(x), std::log(static_cast<long double>(x))));
  }
  EXPECT_LE(worst_log, 2.0);
}

TEST(SinF64AndCosF64, AreWithinTwoUlpUpToTwoToTheTwentieth) {
  Random random(41);
  SCOPED_TRACE(random.trace());
  double worst = 0.0;
  for (int i = 0; i < 200000; ++i) {
    const double reach = std::ldexp(1.0, random.integer(-10, 20));
    const double x = reach * (2.0 * random.integer(0, 1 << 30) / (1 << 30) - 1.0);
    worst = std::max(worst, ulps(sin_f64(x), std::sin(static_cast<long double>(x))));
    worst = std::max(worst, ulps(cos_f64(x), std::cos(static_cast<long double>(x))));
  }
  EXPECT_LE(worst, 2.0);
}

TEST(SinF64AndCosF64, AreRightNearMultiplesOfHalfPi) {
  double worst = 0.0;
  for (int n = 1; n < 600000; n += 7) {
    const double x = n * 1.57079632679489661923;
    worst = std::max(worst, ulps(sin_f64(x), std::sin(static_cast<long double>(x))));
    worst = std::max(worst, ulps(cos_f64(x), std::cos(static_cast<long double>(x))));
  }
  EXPECT_LE(worst, 2.0);
}

}  // namespace
}  // namespace spel::kernels
