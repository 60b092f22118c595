// The promise above all others: what a model computes does not change.
#include "tests/engine/golden_bits.h"

#include <filesystem>
#include <gtest/gtest.h>

namespace spel::engine {
namespace {

TEST(GoldenBits, AreWhatTheyWereOnEveryInstructionSet) {
  const auto shipped = std::filesystem::path(SPEL_SOURCE_DIR) / "engine/models/spel-21m";
  const auto expected = testing::expected_golden_bits();
  for (const kernels::Isa isa : kernels::attainable_isas()) {
    const auto found = testing::compute_golden_bits(isa, shipped);
    EXPECT_TRUE(found == expected) << isa_name(isa) << " computes\n" << testing::spelled(found);
  }
}

}  // namespace
}  // namespace spel::engine
