#include "kernels/scalar_math.h"

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

#include "kernels/polynomials.h"

namespace spel::kernels {
namespace {

/// p = p * x + c for each coefficient, highest power first.
template <class Float, std::size_t N>
Float horner(const Float (&coefficients)[N], Float x) {
  Float p = coefficients[0];
  for (std::size_t i = 1; i < N; ++i) {
    p = std::fma(p, x, coefficients[i]);
  }
  return p;
}

/// 2/(2k+1) for the odd part of log((1+s)/(1-s)), highest power first, without the leading 2.
constexpr float kLog32[] = {2.0F / 15, 2.0F / 13, 2.0F / 11, 2.0F / 9,
                            2.0F / 7,  2.0F / 5,  2.0F / 3};
constexpr double kLog64[] = {2.0 / 25, 2.0 / 23, 2.0 / 21, 2.0 / 19, 2.0 / 17, 2.0 / 15,
                             2.0 / 13, 2.0 / 11, 2.0 / 9,  2.0 / 7,  2.0 / 5,  2.0 / 3};

// sin r = r + r^3 S(r^2), cos r = 1 - r^2/2 + r^4 C(r^2).
constexpr double kSin64[] = {
    1.0 / 355687428096000, -1.0 / 1307674368000, 1.0 / 6227020800, -1.0 / 39916800,
    1.0 / 362880,          -1.0 / 5040,          1.0 / 120,        -1.0 / 6};
constexpr double kCos64[] = {
    -1.0 / 6402373705728000, 1.0 / 20922789888000, -1.0 / 87178291200, 1.0 / 479001600,
    -1.0 / 3628800,          1.0 / 40320,          -1.0 / 720,         1.0 / 24};

/// log of a positive finite number split as m * 2^e, m in [sqrt(1/2), sqrt(2)).
template <class Float, std::size_t N>
Float log_of_split(Float m, Float e, const Float (&coefficients)[N], Float ln2_hi, Float ln2_lo) {
  const Float f = m - 1;
  const Float s = f / (2 + f);
  const Float z = s * s;
  const Float r = z * horner(coefficients, z);
  const Float half_square = Float{0.5} * f * f;
  // f - f^2/2 + s (f^2/2 + r), smallest terms first.
  const Float low = std::fma(s, half_square + r, e * ln2_lo);
  return std::fma(e, ln2_hi, f - (half_square - low));
}

/// x = quadrant * pi/2 + hi + lo, |hi| <= pi/4.
struct Reduced {
  double hi;
  double lo;
  unsigned quadrant;
};

Reduced reduce_by_half_pi(double x) {
  // pi/2 in three parts; n * kPart1 is exact for |n| < 2^20.
  constexpr double kTwoOverPi = 0x1.45f306dc9c883p-1;
  constexpr double kPart1 = 0x1.921fb544p+0;
  constexpr double kPart2 = 0x1.0b4611a626331p-34;
  constexpr double kPart3 = 0x1.1701b839a252p-88;
  const double n = std::fma(x, kTwoOverPi, kRoundMagic64) - kRoundMagic64;
  const double rest = std::fma(-n, kPart1, x);
  const double w = n * kPart2;
  const double w_error = std::fma(n, kPart2, -w);
  const double hi = rest - w;
  const double lo = ((rest - hi) - w) - w_error - n * kPart3;
  return {hi, lo, static_cast<unsigned>(static_cast<std::int64_t>(n)) & 3U};
}

double sin_of_reduced(const Reduced& r) {
  const double z = r.hi * r.hi;
  const double tail = std::fma(r.hi * z, horner(kSin64, z), std::fma(-0.5 * z, r.lo, r.lo));
  return r.hi + tail;
}

double cos_of_reduced(const Reduced& r) {
  const double z = r.hi * r.hi;
  const double half = 0.5 * z;
  const double head = 1.0 - half;
  const double tail = std::fma(z * z, horner(kCos64, z), -r.hi * r.lo);
  return head + (((1.0 - head) - half) + tail);
}

}  // namespace

float exp_f32(float x) {
  x = x < kExpHigh ? x : (x != x ? x : kExpHigh);
  x = x > kExpLow ? x : (x != x ? x : kExpLow);
  const float shifted = std::fma(x, kLog2E, kRoundMagic);
  const auto n = static_cast<std::int32_t>(std::bit_cast<std::uint32_t>(shifted) -
                                           std::bit_cast<std::uint32_t>(kRoundMagic));
  const float whole = shifted - kRoundMagic;
  float r = std::fma(whole, -kLn2Hi, x);
  r = std::fma(whole, -kLn2Lo, r);
  const float p = horner({kExpC7, kExpC6, kExpC5, kExpC4, kExpC3, kExpC2, 1.0F, 1.0F}, r);
  const std::int32_t half = n >> 1;
  const auto power = [](std::int32_t e) {
    return std::bit_cast<float>((static_cast<std::uint32_t>(e) + 127U) << 23);
  };
  return p * power(half) *
         power(static_cast<std::int32_t>(static_cast<std::uint32_t>(n) -
                                         static_cast<std::uint32_t>(half)));
}

float sigmoid_f32(float x) { return 1.0F / (1.0F + exp_f32(0.0F - x)); }

float log_f32(float x) {
  if (x == 0.0F) {
    return -std::numeric_limits<float>::infinity();
  }
  if (!(x > 0.0F)) {
    return std::numeric_limits<float>::quiet_NaN();
  }
  if (x == std::numeric_limits<float>::infinity()) {
    return x;
  }
  std::int32_t e = 0;
  if (x < std::numeric_limits<float>::min()) {
    x *= 0x1p+24F;
    e = -24;
  }
  // Adding 1 - sqrt(1/2) to the mantissa carries into the exponent from sqrt(2) on.
  constexpr std::uint32_t kOne = 0x3F800000U;
  constexpr std::uint32_t kRootHalf = 0x3F3504F3U;
  const std::uint32_t shifted = std::bit_cast<std::uint32_t>(x) + (kOne - kRootHalf);
  e += static_cast<std::int32_t>(shifted >> 23) - 127;
  const float m = std::bit_cast<float>((shifted & 0x007FFFFFU) + kRootHalf);
  return log_of_split(m, static_cast<float>(e), kLog32, kLn2Hi, kLn2Lo);
}

double exp_f64(double x) {
  if (x != x) {
    return x;
  }
  x = x < kExpHigh64 ? x : kExpHigh64;
  x = x > kExpLow64 ? x : kExpLow64;
  const double whole = std::fma(x, kLog2E64, kRoundMagic64) - kRoundMagic64;
  double r = std::fma(whole, -kLn2Hi64, x);
  r = std::fma(whole, -kLn2Lo64, r);
  const double p = horner(kExp64, r);
  const auto n = static_cast<std::int64_t>(whole);
  const std::int64_t half = n >> 1;
  const auto power = [](std::int64_t e) {
    return std::bit_cast<double>(static_cast<std::uint64_t>(e + 1023) << 52);
  };
  return p * power(half) * power(n - half);
}

double log_f64(double x) {
  if (x == 0.0) {
    return -std::numeric_limits<double>::infinity();
  }
  if (!(x > 0.0)) {
    return std::numeric_limits<double>::quiet_NaN();
  }
  if (x == std::numeric_limits<double>::infinity()) {
    return x;
  }
  std::int64_t e = 0;
  if (x < std::numeric_limits<double>::min()) {
    x *= 0x1p+54;
    e = -54;
  }
  constexpr std::uint64_t kOne = 0x3FF0000000000000U;
  constexpr std::uint64_t kRootHalf = 0x3FE6A09E667F3BCDU;
  const std::uint64_t shifted = std::bit_cast<std::uint64_t>(x) + (kOne - kRootHalf);
  e += static_cast<std::int64_t>(shifted >> 52) - 1023;
  const double m = std::bit_cast<double>((shifted & 0x000FFFFFFFFFFFFFU) + kRootHalf);
  return log_of_split(m, static_cast<double>(e), kLog64, kLn2Hi64, kLn2Lo64);
}

double sin_f64(double x) {
  const Reduced r = reduce_by_half_pi(x);
  const double value = r.quadrant % 2 == 0 ? sin_of_reduced(r) : cos_of_reduced(r);
  return r.quadrant < 2 ? value : -value;
}

double cos_f64(double x) {
  const Reduced r = reduce_by_half_pi(x);
  const double value = r.quadrant % 2 == 0 ? cos_of_reduced(r) : sin_of_reduced(r);
  return r.quadrant == 0 || r.quadrant == 3 ? value : -value;
}

}  // namespace spel::kernels
