#include "engine/files/json_reader.h"

#include <gtest/gtest.h>

#include "model_fixtures.h"

namespace spel::engine {
namespace {

using testing::error_of;

/// Reads any text to its end.
std::string problem_in(const std::string& text) {
  return error_of([&] {
    JsonReader json(text, "text");
    json.skip_value();
    json.finish();
  });
}

std::string string_in(const std::string& text) {
  JsonReader json(text, "text");
  std::string value = json.read_string();
  json.finish();
  return value;
}

TEST(JsonReader, AcceptsEveryFormOfValue) {
  for (const char* text :
       {"null", "true", "false", "0", "-0", "-12.50e+3", "1E9", "\"\"", "[]", "{}", " [ 1 , 2 ] ",
        "\t{\n\"a\"\r: [{}, [[]]] , \"\" : \"b\" } ", R"("\"\\\/\b\f\n\r\t\u00e9\ud834\udd1e")"}) {
    EXPECT_EQ(problem_in(text), "") << text;
  }
}

TEST(JsonReader, DecodesStrings) {
  EXPECT_EQ(string_in(R"("\"\\\/\b\f\n\r\t")"), "\"\\/\b\f\n\r\t");
  EXPECT_EQ(string_in(R"("\u0041\u00e9\u5e33\ud834\udd1e")"),
            "A\xC3\xA9\xE5\xB8\xB3\xF0\x9D\x84\x9E");
  EXPECT_EQ(string_in("\"Zelda-\xC5\xBD\xE5\xB8\xB3\""), "Zelda-\xC5\xBD\xE5\xB8\xB3");
  EXPECT_EQ(string_in(R"("a\u0000b")"), std::string("a\0b", 3));
}

TEST(JsonReader, RefusesWhatIsNotJson) {
  const std::string nul(1, '\0');
  for (const std::string& text : {
           std::string(),
           std::string(" "),
           std::string("nul"),
           std::string("nulll"),
           std::string("True"),
           std::string("NaN"),
           std::string("Infinity"),
           std::string("+1"),
           std::string("01"),
           std::string("-"),
           std::string("1."),
           std::string(".5"),
           std::string("1e"),
           std::string("1e+"),
           std::string("0x10"),
           std::string("1 2"),
           std::string("[1,]"),
           std::string("[,1]"),
           std::string("[1 2]"),
           std::string("["),
           std::string("[1"),
           std::string("[1,"),
           std::string("]"),
           std::string("{"),
           std::string("{\"a\"}"),
           std::string("{\"a\":}"),
           std::string("{\"a\":1,}"),
           std::string("{a:1}"),
           std::string("{'a':1}"),
           std::string("{1:2}"),
           std::string("{\"a\":1 \"b\":2}"),
           std::string("{\"a\":1}}"),
           std::string("[1}"),
           std::string("// no\n1"),
           std::string("/**/1"),
           std::string("\xEF\xBB\xBF{}"),
           std::string("\""),
           std::string("\"a"),
           std::string("\"\\\""),
           std::string("\"\\x41\""),
           std::string("\"\\u12\""),
           std::string("\"\\u12g4\""),
           std::string("\"a\nb\""),
           "\"a" + nul + "b\"",
           "1" + nul,
           nul,
           "\"\\" + nul + "\"",
       }) {
    EXPECT_NE(problem_in(text), "") << text;
  }
}

TEST(JsonReader, RefusesBadUtf8) {
  for (const char* bytes :
       {"\x80", "\xBF", "\xC0\x80", "\xC1\xBF", "\xC2", "\xC2\x41", "\xE0\x80\x80", "\xE0\x9F\xBF",
        "\xED\xA0\x80", "\xED\xBF\xBF", "\xE2\x82", "\xF0\x80\x80\x80", "\xF0\x8F\xBF\xBF",
        "\xF4\x90\x80\x80", "\xF5\x80\x80\x80", "\xFF", "\xFE", "\xF0\x9D\x84"}) {
    const std::string open = std::string("\"").append(bytes);
    EXPECT_NE(problem_in(std::string(open).append("\"")).find("UTF-8"), std::string::npos);
    EXPECT_NE(problem_in(open), "");
  }
}

TEST(JsonReader, RefusesLoneSurrogates) {
  for (const char* text : {R"("\ud800")", R"("\udc00")", R"("\ud800\ud800")", R"("\ud800x")",
                           R"("\udbff\n")", R"("\ud800\u0041")"}) {
    EXPECT_NE(problem_in(text).find("surrogate"), std::string::npos) << text;
  }
}

TEST(JsonReader, RefusesRepeatedKeysHoweverTheyAreWritten) {
  EXPECT_NE(problem_in(R"({"a":1,"a":2})").find("repeated"), std::string::npos);
  EXPECT_NE(problem_in(R"({"a":1,"\u0061":2})").find("repeated"), std::string::npos);
  EXPECT_NE(problem_in(R"([{"x":{"a":1,"b":2,"a":3}}])").find("repeated"), std::string::npos);
  EXPECT_EQ(problem_in(R"([{"a":1},{"a":{"a":2}}])"), "");
}

TEST(JsonReader, BoundsDepth) {
  const auto nested = [](std::size_t depth) {
    return std::string(depth, '[') + std::string(depth, ']');
  };
  EXPECT_EQ(problem_in(nested(JsonReader::kDepthMax)), "");
  EXPECT_NE(problem_in(nested(JsonReader::kDepthMax + 1)).find("32"), std::string::npos);
  EXPECT_NE(problem_in(std::string(1'000'000, '[')), "");
  std::string objects;
  for (int i = 0; i < 100'000; ++i) {
    objects += "{\"a\":";
  }
  EXPECT_NE(problem_in(objects), "");
}

TEST(JsonReader, BoundsTheNumberOfKeys) {
  const auto object = [](std::size_t keys) {
    std::string text = "{";
    for (std::size_t i = 0; i < keys; ++i) {
      text += i > 0 ? ",\"" : "\"";
      text += std::to_string(i) + "\":0";
    }
    return text + "}";
  };
  EXPECT_EQ(problem_in("[" + object(JsonReader::kLiveKeysMax) + "," + object(5) + "]"), "");
  EXPECT_NE(problem_in(object(JsonReader::kLiveKeysMax + 1)).find("keys"), std::string::npos);
}

TEST(JsonReader, ReadsWholeNumbersExactlyOrNotAtAll) {
  const auto read = [](const std::string& text, std::uint64_t max) {
    JsonReader json(text, "text");
    return json.read_unsigned(max);
  };
  EXPECT_EQ(read("18446744073709551615", UINT64_MAX), UINT64_MAX);
  EXPECT_EQ(read("0", 0), 0U);
  for (const char* text : {"18446744073709551616", "99999999999999999999999999", "-1", "-0", "1.0",
                           "1e0", "\"1\"", "true", "null", "[1]", "4097"}) {
    EXPECT_THROW((void)read(text, text == std::string("4097") ? 4096 : UINT64_MAX), Error) << text;
  }
}

TEST(JsonReader, ReadsFiniteDoublesOnly) {
  const auto read = [](const std::string& text) {
    JsonReader json(text, "text");
    return json.read_double();
  };
  EXPECT_EQ(read("1e-05"), 1e-5);
  EXPECT_EQ(read("-2.5E2"), -250.0);
  EXPECT_EQ(read("16"), 16.0);
  for (const char* text : {"1e400", "-1e999999999999", "nan", "inf", "\"1\"", "-"}) {
    EXPECT_THROW((void)read(text), Error) << text;
  }
  EXPECT_THROW((void)read("1" + std::string(100'000, '0')), Error);
}

TEST(JsonReader, SaysWhereWhatWasExpectedAndWhatWasFound) {
  EXPECT_EQ(problem_in("[1,x]"), "text: at byte 3 expected a JSON value, found 'x'");
  EXPECT_EQ(problem_in("[1"), "text: at byte 2 expected ',' or ']', found the end");
  EXPECT_EQ(problem_in("\"\x01\""),
            "text: at byte 1 expected no control character in a string, found byte 1");
}

TEST(JsonReader, QuotesWhatItReads) {
  std::string text;
  for (int c = 0; c < 128; ++c) {
    text.push_back(static_cast<char>(c));
  }
  text += "\xE5\xB8\xB3";
  EXPECT_EQ(string_in(json_quoted(text)), text);
}

}  // namespace
}  // namespace spel::engine
