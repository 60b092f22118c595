#include "config/base/checked.h"

#include <cstdint>
#include <gtest/gtest.h>

namespace spel {
namespace {

TEST(CheckedArithmetic, ProductsThatFitAreExact) {
  EXPECT_EQ(checked_mul<std::uint64_t>(1ULL << 31, 1ULL << 31, "size"), 1ULL << 62);
}

TEST(CheckedArithmetic, ProductsThatWrapAreRefusedByName) {
  try {
    (void)checked_mul<std::uint64_t>((1ULL << 42) + 1, 1ULL << 22, "embedding size");
    FAIL() << "a wrapped product was accepted";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kCorrupt);
    EXPECT_NE(std::string(error.what()).find("embedding size"), std::string::npos);
  }
}

TEST(CheckedArithmetic, SumsThatWrapAreRefused) {
  EXPECT_EQ(checked_add<std::uint32_t>(1, 2, "sum"), 3U);
  EXPECT_THROW((void)checked_add<std::uint32_t>(0xffffffffU, 1, "sum"), Error);
}

}  // namespace
}  // namespace spel
