// What chooses and finds notes, against the definitions of NUMERICS.md written out.
#include <algorithm>
#include <gtest/gtest.h>
#include <limits>

#include "tests/kernels/support.h"

namespace spel::kernels {
namespace {

float widen(std::uint16_t bf16) { return std::bit_cast<float>(std::uint32_t{bf16} << 16); }

/// bf16 values [dim][kLanes].
std::vector<std::uint16_t> random_panel(Random& random, std::size_t dim) {
  std::vector<std::uint16_t> panel(dim * kLanes);
  for (std::uint16_t& value : panel) {
    value = static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(random.normal()) >> 16);
  }
  return panel;
}

/// Dots of queries [count][dim] with each lane, rounded after every step.
std::vector<float> dots_of(const std::vector<std::uint16_t>& panel,
                           const std::vector<float>& queries, std::size_t dim) {
  std::vector<float> dots(queries.size() / dim * kLanes);
  for (std::size_t q = 0; q < queries.size() / dim; ++q) {
    for (std::size_t lane = 0; lane < kLanes; ++lane) {
      for (std::size_t i = 0; i < dim; ++i) {
        const float product = queries[q * dim + i] * widen(panel[i * kLanes + lane]);
        dots[q * kLanes + lane] += product;
      }
    }
  }
  return dots;
}

TEST(Bf16Dots, EverySetRoundsProductsAndSumsOneByOne) {
  Random random(41);
  SCOPED_TRACE(random.trace());
  for (const std::size_t dim : {1U, 16U, 31U, 32U}) {
    for (std::size_t count = 1; count <= 9; ++count) {
      const auto panel = random_panel(random, dim);
      const auto queries = random.normals(count * dim);
      const auto expected = dots_of(panel, queries, dim);
      for (const Kernels& kernels : KernelRegistry::attainable()) {
        std::vector<float> dots(expected.size());
        kernels.bf16_dots(panel.data(), queries.data(), count, dim, dots.data());
        EXPECT_TRUE(same_bytes(expected, dots)) << kernels.variant() << " dim=" << dim;
      }
    }
  }
}

TEST(Bf16Alignment, EverySetTakesTheBestPlaceOfTheLastToken) {
  Random random(42);
  SCOPED_TRACE(random.trace());
  constexpr std::size_t kDim = 32;
  for (std::size_t tokens = 1; tokens <= kLanes; ++tokens) {
    const auto panel = random_panel(random, kDim);
    const auto queries = random.normals(tokens * kDim);
    const auto dots = dots_of(panel, queries, kDim);
    float best = -std::numeric_limits<float>::infinity();
    for (std::size_t last = 0; last < kLanes; ++last) {
      float sum = 0.0F;
      for (std::size_t back = 0; back < std::min(tokens, last + 1); ++back) {
        sum += dots[(tokens - 1 - back) * kLanes + last - back];
      }
      best = std::max(best, sum);
    }
    for (const Kernels& kernels : KernelRegistry::attainable()) {
      EXPECT_EQ(kernels.bf16_alignment(panel.data(), queries.data(), tokens, kDim),
                best / static_cast<float>(tokens))
          << kernels.variant() << " tokens=" << tokens;
    }
  }
}

TEST(CoarseAlignments, EverySetGivesTheExactSums) {
  constexpr std::size_t kPanels = 40;
  constexpr std::size_t kPanelBytes = kCoarseCoordinates * kLanes;
  Random random(43);
  SCOPED_TRACE(random.trace());
  // Ordinary values, then the largest of every sign, where a narrower sum would overflow.
  for (const bool extreme : {false, true}) {
    const auto value = [&] {
      return extreme ? 127 - 254 * random.integer(0, 1) : random.integer(-127, 127);
    };
    std::vector<std::uint8_t> panels(kPanels * kPanelBytes);
    for (std::uint8_t& byte : panels) {
      byte = static_cast<std::uint8_t>(value() + 128);
    }
    std::vector<std::int8_t> query(kCoarseTokens * kCoarseCoordinates);
    for (std::int8_t& coordinate : query) {
      coordinate = static_cast<std::int8_t>(value());
    }
    const auto dot = [&](std::size_t panel, std::size_t token, std::size_t lane) {
      int sum = 0;
      for (std::size_t i = 0; i < kCoarseCoordinates; ++i) {
        const std::size_t at = panel * kPanelBytes + (i / 4 * kLanes + lane) * 4 + i % 4;
        sum += query[token * kCoarseCoordinates + i] * (panels[at] - 128);
      }
      return sum;
    };
    std::vector<std::int32_t> expected(kPanels, std::numeric_limits<std::int32_t>::min());
    for (std::size_t panel = 0; panel < kPanels; ++panel) {
      for (std::size_t last = 0; last < kLanes; ++last) {
        expected[panel] = std::max(expected[panel],
                                   dot(panel, 1, last) + (last > 0 ? dot(panel, 0, last - 1) : 0));
      }
    }
    for (const Kernels& kernels : KernelRegistry::attainable()) {
      std::vector<std::int32_t> scores(kPanels);
      kernels.coarse_alignments(panels.data(), kPanels, query.data(), scores.data());
      EXPECT_EQ(scores, expected) << kernels.variant();
    }
  }
}

TEST(OrderedDots, EverySetSumsInTheOrderOfTheElements) {
  Random random(44);
  SCOPED_TRACE(random.trace());
  for (const std::size_t n : kOddSizes) {
    for (const std::size_t count : {1U, 15U, 16U, 40U}) {
      const std::size_t stride = n + 3;
      const auto rows = random.normals(count * stride);
      const auto x = random.normals(n);
      std::vector<float> expected(count);
      for (std::size_t row = 0; row < count; ++row) {
        for (std::size_t i = 0; i < n; ++i) {
          const float product = rows[row * stride + i] * x[i];
          expected[row] += product;
        }
      }
      for (const Kernels& kernels : KernelRegistry::attainable()) {
        std::vector<float> dots(count);
        kernels.ordered_dots(rows.data(), stride, count, x.data(), n, dots.data());
        EXPECT_TRUE(same_bytes(expected, dots)) << kernels.variant() << " n=" << n;
      }
    }
  }
}

TEST(UnitRows, EverySetGivesLengthOneAndLeavesZerosZero) {
  Random random(45);
  SCOPED_TRACE(random.trace());
  for (const std::size_t n : kOddSizes) {
    auto x = random.normals(3 * n);
    std::fill_n(x.begin() + static_cast<std::ptrdiff_t>(n), n, 0.0F);
    std::vector<float> expected = x;
    for (std::size_t row = 0; row < 3; ++row) {
      float squares = 0.0F;
      for (std::size_t i = 0; i < n; ++i) {
        const float square = x[row * n + i] * x[row * n + i];
        squares += square;
      }
      for (std::size_t i = 0; i < n; ++i) {
        expected[row * n + i] *= squares > 0.0F ? 1.0F / std::sqrt(squares) : 0.0F;
      }
    }
    for (const Kernels& kernels : KernelRegistry::attainable()) {
      auto y = x;
      kernels.unit_rows(y.data(), 3, n);
      EXPECT_TRUE(same_bytes(expected, y)) << kernels.variant() << " n=" << n;
    }
  }
}

TEST(Project, EverySetAddsInputsToTheirOutputsInOrder) {
  Random random(46);
  SCOPED_TRACE(random.trace());
  for (const std::size_t n : kOddSizes) {
    const auto x = random.normals(n);
    std::vector<ProjectedTo> places(n);
    std::vector<float> expected = {0.5F, 0.0F, 0.0F, 0.0F, 0.0F};
    for (std::size_t i = 0; i < n; ++i) {
      const bool minus = random.integer(0, 1) == 0;
      places[i] = {static_cast<std::uint32_t>(random.integer(0, 4)), minus ? -1.0F : 1.0F};
      expected[places[i].output] += minus ? -x[i] : x[i];
    }
    for (const Kernels& kernels : KernelRegistry::attainable()) {
      std::vector<float> out = {0.5F, 0.0F, 0.0F, 0.0F, 0.0F};
      kernels.project(x.data(), places.data(), n, out.data());
      EXPECT_TRUE(same_bytes(expected, out)) << kernels.variant() << " n=" << n;
    }
  }
}

}  // namespace
}  // namespace spel::kernels
