// The passes over a row of logits, against their definitions written out.
#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "kernels/counter.h"
#include "kernels/scalar_math.h"
#include "tests/kernels/support.h"

namespace spel::kernels {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

std::vector<float> logits_with_holes(Random& random, std::size_t n) {
  auto x = random.normals(n, 6.0F);
  for (float& value : x) {
    switch (random.integer(0, 19)) {
      case 0:
        value = kNan;
        break;
      case 1:
        value = -kInf;
        break;
      default:
        break;
    }
  }
  return x;
}

TEST(Choose, TheLargestOfEachBlockIgnoresWhatIsNotANumber) {
  Random random(1);
  for (const std::size_t n : kOddSizes) {
    const auto x = logits_with_holes(random, n);
    std::vector<float> expected;
    for (std::size_t i = 0; i < n; i += kMaxBlock) {
      float largest = -kInf;
      for (std::size_t j = i; j < std::min(n, i + kMaxBlock); ++j) {
        largest = x[j] > largest ? x[j] : largest;
      }
      expected.push_back(largest);
    }
    for (const Kernels& kernels : KernelRegistry::attainable()) {
      std::vector<float> found(expected.size());
      kernels.block_max(x.data(), n, found.data());
      EXPECT_EQ(found, expected) << kernels.variant() << ", " << n;
    }
  }
}

TEST(Choose, ABlockWithoutANumberHasMinusInfinity) {
  const std::vector<float> x(70, kNan);
  std::vector<float> found(2);
  reference_kernels().block_max(x.data(), x.size(), found.data());
  EXPECT_EQ(found, (std::vector<float>{-kInf, -kInf}));
}

TEST(Choose, PlacesAtLeastAreThoseThatReachTheThreshold) {
  Random random(2);
  for (const std::size_t n : kOddSizes) {
    const auto x = logits_with_holes(random, n);
    for (const float least : {-kInf, x[n / 2], 5.0F}) {
      std::vector<std::uint32_t> expected;
      for (std::size_t i = 0; i < n; ++i) {
        if (x[i] >= least) {
          expected.push_back(static_cast<std::uint32_t>(i));
        }
      }
      for (const Kernels& kernels : KernelRegistry::attainable()) {
        std::vector<std::uint32_t> found(n);
        found.resize(kernels.places_at_least(x.data(), n, least, found.data()));
        EXPECT_EQ(found, expected) << kernels.variant() << ", " << n;
      }
    }
  }
}

std::uint64_t mix(std::uint64_t x) {
  x += 0x9e3779b97f4a7c15ULL;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
  return x ^ (x >> 31);
}

TEST(Choose, TheRaceKeepsWhatItsInequalitySays) {
  Random random(3);
  std::size_t kept = 0;
  for (const std::size_t n : kOddSizes) {
    const auto x = logits_with_holes(random, n);
    const Race rules{.stream = 0x0123456789abcdefULL * n,
                     .first = 1000 + n,
                     .top = 12.0F,
                     .slope = 0x1.7p20F,
                     .level = 0x1.0dp30F};
    std::vector<std::uint32_t> expected;
    for (std::size_t i = 0; i < n; ++i) {
      const std::uint64_t draw = mix(rules.stream ^ (rules.first + i));
      const double shortfall = static_cast<double>(~draw >> 12) + 0.5;
      const auto high = static_cast<std::int32_t>(std::bit_cast<std::uint64_t>(shortfall) >> 32);
      if (static_cast<float>(high) <= std::fma(x[i] - rules.top, rules.slope, rules.level)) {
        expected.push_back(static_cast<std::uint32_t>(i));
      }
    }
    kept += expected.size();
    for (const Kernels& kernels : KernelRegistry::attainable()) {
      std::vector<std::uint32_t> found(n);
      found.resize(kernels.race(x.data(), n, rules, found.data()));
      EXPECT_EQ(found, expected) << kernels.variant() << ", " << n;
    }
  }
  EXPECT_GT(kept, 50U) << "the level leaves something to compare";
  EXPECT_LT(kept, 1500U);
}

TEST(Choose, ASoftmaxSumHasTheTermsOfScalarMathInLanes) {
  Random random(4);
  for (const std::size_t n : kOddSizes) {
    const auto x = logits_with_holes(random, n);
    for (const double temperature : {1.0, 0.7, 1e-3, 100.0}) {
      const double top = 25.0 / temperature;
      double lanes[16] = {};
      for (std::size_t i = 0; i < n; ++i) {
        if (!std::isnan(x[i])) {
          lanes[i % 16] += exp_f64(static_cast<double>(x[i]) / temperature - top);
        }
      }
      for (std::size_t half = 8; half > 0; half /= 2) {
        for (std::size_t l = 0; l < half; ++l) {
          lanes[l] += lanes[l + half];
        }
      }
      for (const Kernels& kernels : KernelRegistry::attainable()) {
        EXPECT_EQ(kernels.softmax_sum(x.data(), n, temperature, top), lanes[0])
            << kernels.variant() << ", " << n << ", " << temperature;
      }
    }
  }
}

// Every exponent of the result, the smallest among them, and arguments beyond both ends.
TEST(Choose, ExponentialsAreThoseOfScalarMath) {
  std::vector<double> x;
  std::vector<double> expected;
  for (double argument = -800.0; argument < 720.0; argument += 0.037) {
    x.push_back(argument);
    expected.push_back(exp_f64(argument));
  }
  x.push_back(std::numeric_limits<double>::quiet_NaN());
  expected.push_back(0.0);
  x.push_back(-std::numeric_limits<double>::infinity());
  expected.push_back(0.0);
  for (const Kernels& kernels : KernelRegistry::attainable()) {
    std::vector<double> y(x.size());
    kernels.exp_f64(x.data(), x.size(), y.data());
    EXPECT_TRUE(same_bytes(expected, y)) << kernels.variant();
  }
}

}  // namespace
}  // namespace spel::kernels
