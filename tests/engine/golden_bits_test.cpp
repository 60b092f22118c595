// The promise above all others: what a model computes does not change.
#include "tests/engine/golden_bits.h"

#include <gtest/gtest.h>

#include "tests/engine/golden_sources.h"

namespace spel::engine {
namespace {

TEST(GoldenBits, AreWhatTheyWereOnEveryInstructionSet) {
  const auto sources = testing::golden_sources(SPEL_SOURCE_DIR);
  for (const kernels::Isa isa : kernels::attainable_isas()) {
    std::vector<testing::GoldenBits> found;
    WeightsDtype dtype = WeightsDtype::kBf16;
    for (const auto& source : sources) {
      found.push_back(testing::compute_golden_bits(source->config(), *source, dtype, isa));
      dtype = dtype == WeightsDtype::kBf16 ? WeightsDtype::kF32 : WeightsDtype::kBf16;
    }
    EXPECT_TRUE(found == testing::expected_golden_bits()) << isa_name(isa) << " computes\n"
                                                          << testing::spelled(found);
  }
}

TEST(GoldenBits, TheShippedModelHasTheShapeTheyAssume) {
  const auto sources = testing::golden_sources(SPEL_SOURCE_DIR);
  EXPECT_EQ(spel_hybrid_spec(sources.front()->config()),
            spel_hybrid_spec(testing::golden_models().front()));
}

}  // namespace
}  // namespace spel::engine
