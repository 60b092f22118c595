#include "config/json/file_values.h"

#include <cstdint>
#include <gtest/gtest.h>
#include <string>

namespace spel {
namespace {

template <typename Action>
std::string error_of(Action&& action) {
  try {
    action();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kCorrupt);
    return error.what();
  }
  return {};
}

std::string problem_in(const std::string& text, const JsonLimits& limits = {}) {
  return error_of([&] { (void)read_file_object(text, "file", limits); });
}

TEST(FileValues, ReadsWholeNumbersExactlyOrNotAtAll) {
  const auto read = [](const std::string& text, std::uint64_t max) {
    return whole_number(read_json(text), "n", max);
  };
  EXPECT_EQ(read("18446744073709551615", UINT64_MAX), UINT64_MAX);
  EXPECT_EQ(read("0", 0), 0U);
  for (const char* text : {"18446744073709551616", "99999999999999999999999999", "-1", "-0", "1.0",
                           "1e0", "\"1\"", "true", "null", "[1]", "4097"}) {
    EXPECT_NE(error_of([&] { (void)read(text, text == std::string("4097") ? 4096 : UINT64_MAX); }),
              "")
        << text;
  }
}

TEST(FileValues, ReadsFiniteNumbersOnly) {
  const auto read = [](const std::string& text) { return real_number(read_json(text), "x"); };
  EXPECT_EQ(read("1e-05"), 1e-5);
  EXPECT_EQ(read("-2.5E2"), -250.0);
  EXPECT_EQ(read("16"), 16.0);
  EXPECT_EQ(error_of([&] { (void)read("\"1\""); }), "x is \"1\"; expected a number");
  for (const std::string& number :
       {std::string("1e400"), std::string("-1e999999999999"), "1" + std::string(100'000, '0')}) {
    const std::string problem = problem_in("{\"a\":1,\"x\":" + number + "}");
    EXPECT_TRUE(problem.ends_with("(key \"x\")")) << problem;
    EXPECT_LT(problem.size(), 800U);
  }
}

TEST(FileValues, SayWhereWhatWasFoundAndWhatWasExpected) {
  const JsonValue value = {
      {"list", {1, 2, 3}}, {"text", std::string(5000, 'x')}, {"none", nullptr}};
  EXPECT_EQ(error_of([&] { (void)text_of(*value.find("list"), "f: list"); }),
            "f: list is an array; expected a string");
  EXPECT_EQ(error_of([&] { (void)elements_of(*value.find("list"), "f: list", 2); }),
            "f: list has 3 elements; expected at most 2");
  EXPECT_EQ(error_of([&] { (void)members_of(*value.find("none"), "f: none"); }),
            "f: none is null; expected an object");
  const std::string cut = error_of([&] { (void)true_or_false(*value.find("text"), "f: text"); });
  EXPECT_TRUE(cut.ends_with("x\"...; expected true or false")) << cut;
  EXPECT_LT(cut.size(), 200U);
}

TEST(FileValues, SayWhereATextStopsBeingJson) {
  const std::string syntax = problem_in("{\"a\":1, x}");
  EXPECT_TRUE(syntax.starts_with("file: at byte 9: ")) << syntax;
  EXPECT_TRUE(syntax.ends_with("(key \"a\")")) << syntax;
  EXPECT_EQ(problem_in("[]"), "file: not a JSON object");
  EXPECT_EQ(problem_in("{\"a\":{\"b\":1,\"\\u0062\":2}}"), "file: b appears twice");
  EXPECT_NE(problem_in("\xEF\xBB\xBF{}").find("byte order mark"), std::string::npos);
  EXPECT_NE(problem_in("{\"a\":1,\"b\":2}", {.members = 1}), "");
}

TEST(FileValues, AMemberIsBuiltAnewAndMustBeThere) {
  const std::string text = R"({"b":[1],"a":"x"})";
  const JsonObject object = read_file_object(text, "file", {});
  EXPECT_EQ(dump_json(file_member(object, "b", "file")), "[1]");
  EXPECT_EQ(file_member(object, "a", "file").text(), "x");
  EXPECT_EQ(error_of([&] { (void)file_member(object, "c", "file"); }), "file: c is missing");
  const JsonObject strict = read_file_object(text, "file", {.parts = 1});
  EXPECT_EQ(error_of([&] { (void)file_member(strict, "b", "file"); }), "");
  EXPECT_EQ(error_of([&] { (void)file_member(strict, "b", "file"); }), "") << "counted once each";
}

}  // namespace
}  // namespace spel
