#include "config/json/value.h"

#include <cmath>
#include <cstdint>
#include <gtest/gtest.h>
#include <limits>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "config/json/reader.h"

namespace spel {
namespace {

TEST(JsonValue, BracesMakeObjectsOfPairsAndArraysOfTheRest) {
  const JsonValue value = {{"name", "x"},
                           {"list", {1, -2, 3.5, true, nullptr}},
                           {"inner", {{"a", std::vector<std::size_t>{7, 8}}}},
                           {"view", std::string_view("y")}};
  EXPECT_EQ(dump_json(value),
            R"({"name":"x","list":[1,-2,3.5,true,null],"inner":{"a":[7,8]},"view":"y"})");
  EXPECT_EQ(dump_json(JsonValue::array()), "[]");
  EXPECT_EQ(dump_json(JsonValue::object()), "{}");
  EXPECT_EQ(dump_json(JsonValue()), "null");
}

TEST(JsonValue, NullBecomesWhatItIsFirstUsedAs) {
  JsonValue object;
  object["b"] = 1;
  object["a"] = {{"x", 2}};
  object["b"] = "two";
  EXPECT_EQ(dump_json(object), R"({"b":"two","a":{"x":2}})");
  JsonValue list;
  list.push_back(1);
  list.push_back({{"k", 2U}});
  EXPECT_EQ(dump_json(list), R"([1,{"k":2}])");
  EXPECT_EQ(list.size(), 2U);
  EXPECT_TRUE(JsonValue().empty());
  EXPECT_EQ(JsonValue("text").size(), 1U);
}

TEST(JsonValue, ACopyIsItsOwn) {
  JsonValue original = {{"a", {1, 2}}};
  JsonValue copy = original;
  copy["a"].push_back(3);
  EXPECT_EQ(dump_json(original), R"({"a":[1,2]})");
  EXPECT_EQ(dump_json(copy), R"({"a":[1,2,3]})");
  EXPECT_FALSE(original == copy);
  original = copy;
  EXPECT_TRUE(original == copy);
}

TEST(JsonValue, NumbersAreEqualByValue) {
  EXPECT_TRUE(JsonValue(1) == JsonValue(1.0));
  EXPECT_TRUE(JsonValue(1U) == JsonValue(1));
  EXPECT_TRUE(JsonValue(0) == JsonValue(-0.0));
  EXPECT_FALSE(JsonValue(UINT64_MAX) == JsonValue(UINT64_MAX - 1));
  EXPECT_FALSE(JsonValue(0) == JsonValue(false));
  EXPECT_FALSE(JsonValue("1") == JsonValue(1));
}

TEST(JsonValue, WritesNumbersAndTextAsTheLibraryDoes) {
  const double numbers[] = {0.0, -0.0, 1.0, 1e30, 1e-7, 0.1, 123456789.125, 5e-324, 1.7e308};
  for (const double number : numbers) {
    EXPECT_EQ(dump_json(number), nlohmann::json(number).dump());
  }
  for (const std::string text :
       {"", "a", "a\"b\\c/\n\t\x01\x7f", "caf\xC3\xA9", "\xF0\x9F\x98\x80"}) {
    EXPECT_EQ(dump_json(text), nlohmann::json(text).dump());
  }
  EXPECT_EQ(dump_json(UINT64_MAX), "18446744073709551615");
  EXPECT_EQ(dump_json(INT64_MIN), "-9223372036854775808");
}

TEST(JsonValue, BadTextAndNumbersAreWrittenAsWhatStandsForThem) {
  const JsonValue value = {{"text", "a\xFFz\xE9\x9C"},
                           {"nan", std::nan("")},
                           {"inf", std::numeric_limits<double>::infinity()}};
  EXPECT_EQ(dump_json(value),
            "{\"text\":\"a\xEF\xBF\xBDz\xEF\xBF\xBD\",\"nan\":null,\"inf\":null}");
}

}  // namespace
}  // namespace spel
