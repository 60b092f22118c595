// The noise that choices are made with: a function of (seed, position, token) alone, so there is no
// state to advance, roll back or share.
#pragma once

#include <bit>
#include <cstdint>

#include "kernels/counter.h"
#include "kernels/scalar_math.h"

namespace spel::engine {

/// The noise of one position of one sequence.
class PositionNoise {
 public:
  PositionNoise(std::uint64_t seed, std::uint64_t position) : stream_(mix(mix(seed) ^ position)) {}

  /// What a token's counter is combined with, as kernels::Race takes it.
  [[nodiscard]] std::uint64_t stream() const { return stream_; }

  /// Uniform in (0, 1): 52 random bits and a half, so never 0, never 1, and exact in a double.
  [[nodiscard]] double uniform(std::uint64_t token) const {
    return (static_cast<double>(mix(stream_ ^ token) >> kernels::kDrawShift) + 0.5) * 0x1p-52;
  }

  /// Standard Gumbel noise.
  [[nodiscard]] double gumbel(std::uint64_t token) const {
    return -kernels::log_f64(-kernels::log_f64(uniform(token)));
  }

  /// No less than gumbel(token), without a logarithm.
  ///
  /// With v = 1 - u, exact: -log u >= v, so gumbel <= -log v. Of a double x = m 2^e, m in [1, 2),
  /// the upper word of its bits over 2^20 is at most 1023 + e + (m - 1) <= 1023 + log2 x; with x =
  /// 2^52 v this bounds -log2 v. The logarithms of gumbel() are within 2 ulp of numbers below 38 in
  /// size, and so is the product here: 2^-30 is more than all of that.
  [[nodiscard]] double at_most(std::uint64_t token) const {
    constexpr double kLn2 = 0x1.62e42fefa39efp-1;
    const double shortfall =
        static_cast<double>(~mix(stream_ ^ token) >> kernels::kDrawShift) + 0.5;
    const auto high = static_cast<double>(std::bit_cast<std::uint64_t>(shortfall) >> 32);
    return (1023.0 + 52.0 - high * 0x1p-20) * kLn2 + 0x1p-30;
  }
  /// No less than any gumbel().
  static constexpr double kMost = 36.8;

 private:
  static constexpr std::uint64_t mix(std::uint64_t x) {
    x += kernels::kMixStep;
    x = (x ^ (x >> 30)) * kernels::kMixFirst;
    x = (x ^ (x >> 27)) * kernels::kMixSecond;
    return x ^ (x >> 31);
  }

  std::uint64_t stream_;
};

}  // namespace spel::engine
