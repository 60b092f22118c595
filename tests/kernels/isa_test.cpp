#include "kernels/isa.h"

#include <algorithm>
#include <gtest/gtest.h>
#include <string>

#include "config/base/error.h"
#include "kernels/registry.h"

namespace spel::kernels {
namespace {

TEST(Isa, NamesAndParsingAreInverse) {
  for (const Isa isa : {Isa::kScalar, Isa::kNeon, Isa::kAvx2, Isa::kAvx512}) {
    EXPECT_EQ(parse_isa(isa_name(isa)), isa);
  }
  for (const char* word : {"", "AVX2", "avx", "avx512 ", "sse"}) {
    EXPECT_EQ(parse_isa(word), std::nullopt) << word;
  }
}

TEST(Isa, ScalarIsAlwaysAttainableAndLast) {
  ASSERT_FALSE(attainable_isas().empty());
  EXPECT_EQ(attainable_isas().back(), Isa::kScalar);
}

TEST(Isa, EachAttainableSetIsListedOnce) {
  const auto isas = attainable_isas();
  for (const Isa isa : isas) {
    EXPECT_EQ(std::count(isas.begin(), isas.end(), isa), 1);
  }
}

TEST(Select, TakesTheBestSetByDefault) {
  EXPECT_EQ(Kernels::select().isa(), attainable_isas().front());
}

TEST(Select, AForcedSetTakesEffect) {
  for (const Isa isa : attainable_isas()) {
    EXPECT_EQ(Kernels::select(isa).isa(), isa);
  }
}

TEST(Select, GivesTheSameObjectEachTime) {
  EXPECT_EQ(&Kernels::select(Isa::kScalar), &Kernels::select(Isa::kScalar));
}

TEST(Select, AnUnattainableSetIsRefusedNamingTheAttainableOnes) {
  const auto isas = attainable_isas();
  for (const Isa isa : {Isa::kNeon, Isa::kAvx2, Isa::kAvx512}) {
    if (std::count(isas.begin(), isas.end(), isa) != 0) {
      continue;
    }
    try {
      (void)Kernels::select(isa);
      FAIL() << isa_name(isa) << " was accepted";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
      const std::string message = error.what();
      EXPECT_NE(message.find(isa_name(isa)), std::string::npos) << message;
      EXPECT_NE(message.find("scalar"), std::string::npos) << message;
    }
  }
}

TEST(Select, VariantsNameTheirSet) {
  for (const Kernels& kernels : KernelRegistry::attainable()) {
    EXPECT_TRUE(kernels.variant().starts_with(isa_name(kernels.isa())));
  }
}

}  // namespace
}  // namespace spel::kernels
