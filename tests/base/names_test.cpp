#include "config/base/names.h"

#include <gtest/gtest.h>
#include <set>

namespace spel {
namespace {

template <typename Enum>
class NamesOf : public ::testing::Test {};
using Enumerations = ::testing::Types<GovernorKind, FinishReason, Ranker>;
TYPED_TEST_SUITE(NamesOf, Enumerations);

TYPED_TEST(NamesOf, AreDistinctAndReadBack) {
  std::set<std::string_view> names;
  for (const auto& [value, name] : kNames<TypeParam>) {
    EXPECT_EQ(name_of(value), name);
    EXPECT_EQ(value_named<TypeParam>(name), value);
    EXPECT_TRUE(names.insert(name).second) << name;
  }
  EXPECT_EQ(value_named<TypeParam>(""), std::nullopt);
  EXPECT_EQ(value_named<TypeParam>("Off"), std::nullopt);
}

TEST(Names, AreListedAsAMessageSaysThem) {
  EXPECT_EQ(quoted_names<GovernorKind>(" or "), R"("off", "trip" or "adaptive")");
  EXPECT_EQ(quoted_names<Ranker>(), R"("fused", "text", "sum", "native", "votes")");
}

TEST(BankName, IsSafeInAPathAndAUrl) {
  EXPECT_TRUE(is_bank_name("Facts-2_a"));
  EXPECT_TRUE(is_bank_name(std::string(limits::kBankNameMax, 'a')));
  for (const std::string& name : {std::string(), std::string(limits::kBankNameMax + 1, 'a'),
                                  std::string(".."), std::string("a/b"), std::string("a\0b", 3)}) {
    EXPECT_FALSE(is_bank_name(name)) << name;
  }
}

}  // namespace
}  // namespace spel
