#include "config/json/reader.h"

#include <atomic>
#include <cstdlib>
#include <ctime>
#include <functional>
#include <gtest/gtest.h>
#include <malloc.h>
#include <new>
#include <string>

namespace {

/// Heap bytes in use, and the most there were since reset.
std::atomic<std::size_t> held{0};
std::atomic<std::size_t> most{0};

void* counted(std::size_t bytes) {
  void* memory = std::malloc(bytes);
  if (memory == nullptr) {
    throw std::bad_alloc();
  }
  const std::size_t now = held += malloc_usable_size(memory);
  if (now > most) {
    most = now;
  }
  return memory;
}

void uncounted(void* memory) noexcept {
  held -= malloc_usable_size(memory);
  std::free(memory);
}

}  // namespace

void* operator new(std::size_t bytes) { return counted(bytes); }
void* operator new[](std::size_t bytes) { return counted(bytes); }
void operator delete(void* memory) noexcept { uncounted(memory); }
void operator delete[](void* memory) noexcept { uncounted(memory); }
void operator delete(void* memory, std::size_t /*bytes*/) noexcept { uncounted(memory); }
void operator delete[](void* memory, std::size_t /*bytes*/) noexcept { uncounted(memory); }

namespace spel {
namespace {

using Fault = JsonError::Fault;

/// The most heap `work` held at once.
std::size_t heap_of(const std::function<void()>& work) {
  const std::size_t before = held;
  most = before;
  work();
  return most - before;
}

Fault fault_of(std::string_view text, const JsonLimits& limits = {}) {
  try {
    JsonObject object(text, limits);
  } catch (const JsonError& error) {
    return error.fault();
  }
  ADD_FAILURE() << "nothing was refused: " << text.substr(0, 80);
  return Fault::kSyntax;
}

std::string repeated(const std::string& first, const std::string& piece, std::size_t times,
                     const std::string& last) {
  std::string text = first;
  for (std::size_t i = 0; i < times; ++i) {
    text += piece;
  }
  return text + last;
}

constexpr std::size_t kMiB = 1U << 20;

TEST(JsonReader, KeepsWhatWasWritten) {
  const std::string text =
      R"({"array":[1,-2,3.5,true,false,null,"s",[],{}],"max":18446744073709551615,"a":{"é":""}})";
  EXPECT_EQ(dump_json(read_json(text)), text);
  EXPECT_EQ(dump_json(read_json(" 1 ")), "1");
}

TEST(JsonReader, AMemberIsBuiltFromItsPlaceWhateverStandsAround) {
  const std::string text =
      "\xEF\xBB\xBF {\"a\\u0062\" \n:\t[1,{\"x\":2}] , \"n\":-12.5e1,\"t\":true,\"s\": \"\\u00e9\" "
      ","
      "\"z\"  :  0}";
  JsonObject object(text, {});
  EXPECT_EQ(object.size(), 5U);
  EXPECT_EQ(dump_json(*object.find("ab")), R"([1,{"x":2}])");
  EXPECT_EQ(object.find("n")->get<double>(), -125.0);
  EXPECT_TRUE(object.find("t")->get<bool>());
  EXPECT_EQ(object.find("s")->text(), "\xC3\xA9");
  EXPECT_EQ(object.find("z")->get<int>(), 0);
  EXPECT_EQ(object.find("z"), object.find("z"));
  EXPECT_EQ(object.find("absent"), nullptr);
}

/// What read_json() says of a text; empty if it accepts it.
std::string problem_in(const std::string& text) {
  try {
    (void)read_json(text);
  } catch (const JsonError& error) {
    return error.what();
  }
  return {};
}

TEST(JsonReader, AcceptsEveryFormOfValue) {
  for (const char* text :
       {"null", "true", "false", "0", "-0", "-12.50e+3", "1E9", "\"\"", "[]", "{}", " [ 1 , 2 ] ",
        "\t{\n\"a\"\r: [{}, [[]]] , \"\" : \"b\" } ", R"("\"\\\/\b\f\n\r\t\u00e9\ud834\udd1e")"}) {
    EXPECT_EQ(problem_in(text), "") << text;
  }
}

TEST(JsonReader, DecodesStrings) {
  EXPECT_EQ(read_json(R"("\"\\\/\b\f\n\r\t")").text(), "\"\\/\b\f\n\r\t");
  EXPECT_EQ(read_json(R"("\u0041\u00e9\u5e33\ud834\udd1e")").text(),
            "A\xC3\xA9\xE5\xB8\xB3\xF0\x9D\x84\x9E");
  EXPECT_EQ(read_json("\"Zelda-\xC5\xBD\xE5\xB8\xB3\"").text(), "Zelda-\xC5\xBD\xE5\xB8\xB3");
  EXPECT_EQ(read_json(R"("a\u0000b")").text(), std::string("a\0b", 3));
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
  EXPECT_NE(problem_in(R"({"a":1,"a":2})").find("twice"), std::string::npos);
  EXPECT_NE(problem_in(R"({"a":1,"\u0061":2})").find("twice"), std::string::npos);
  EXPECT_NE(problem_in(R"([{"x":{"a":1,"b":2,"a":3}}])").find("twice"), std::string::npos);
  EXPECT_EQ(problem_in(R"([{"a":1},{"a":{"a":2}}])"), "");
}

TEST(JsonReader, SaysWhatIsWrong) {
  EXPECT_EQ(fault_of("{"), Fault::kSyntax);
  EXPECT_EQ(fault_of("[]"), Fault::kNotObject);
  EXPECT_EQ(fault_of("1"), Fault::kNotObject);
  EXPECT_EQ(fault_of("{} x"), Fault::kSyntax);
  EXPECT_EQ(fault_of(R"({"a":[{"b":1,"b":1}]})"), Fault::kDuplicateKey);
  EXPECT_EQ(fault_of(R"({"a":1,"a":1})"), Fault::kDuplicateKey);
  EXPECT_EQ(fault_of("{}/* c */"), Fault::kSyntax);
  JsonLimits limits;
  limits.bytes = 3;
  EXPECT_EQ(fault_of("{  }", limits), Fault::kTooLong);
  limits = {};
  limits.depth = 2;
  EXPECT_EQ(fault_of(R"({"a":[[]]})", limits), Fault::kTooDeep);
  limits = {};
  limits.members = 2;
  EXPECT_EQ(fault_of(R"({"a":1,"b":2,"c":3})", limits), Fault::kTooMuch);
  EXPECT_EQ(fault_of(R"({"a":{"a":1,"b":2,"c":3}})", limits), Fault::kTooMuch);
  limits.values = 4;
  EXPECT_EQ(fault_of(R"({"a":[1,[],{},""]})", limits), Fault::kTooMuch);
  EXPECT_NO_THROW(JsonObject(R"({"a":[1,[],{}]})", limits));
}

TEST(JsonReader, CommentsAreBlanksWhereTheyAreAllowed) {
  JsonLimits limits;
  limits.comments = true;
  EXPECT_EQ(dump_json(read_json("{/* c */\"a\" // d\n: 1}", limits)), R"({"a":1})");
  EXPECT_THROW(static_cast<void>(read_json("{/* c */}")), JsonError);
}

TEST(JsonReader, WhatIsNotAskedForTakesNoMoreThanItsText) {
  const std::string unknown[] = {repeated(R"({"a":1,"x":[0)", ",{}", 300'000, "]}"),
                                 repeated(R"({"a":1,"x":[0)", ",\"\"", 300'000, "]}"),
                                 repeated(R"({"a":1,"x":[0)", ",1", 500'000, "]}")};
  for (const std::string& text : unknown) {
    const std::size_t heap = heap_of([&] {
      JsonObject object(text, {});
      EXPECT_EQ(object.find("a")->get<int>(), 1);
    });
    // The library keeps the characters since the last string or number, for its messages.
    EXPECT_LT(heap, 2 * text.size() + 64U * 1024) << text.substr(0, 20);
  }
}

TEST(JsonReader, ATextOfTheLargestSizeHasItsMemoryBounded) {
  JsonLimits limits;
  limits.bytes = 40 * kMiB;
  const struct {
    std::string text;
    bool refused;
  } cases[] = {
      {repeated(R"({"a":[0)", ",{}", 11'000'000, "]}"), true},
      {repeated(R"({"a":[0)", ",1", limits::kJsonValuesMax - 2, "]}"), false},
      {repeated(R"({"a":[0)", ",{}", limits::kJsonPartsMax + 1, "]}"), true},
      {repeated(R"({"a":[0)", ",\"\"", limits::kJsonPartsMax - 8, "]}"), false},
      {R"({"a":")" + std::string(33 * kMiB, 'a') + "\"}", false},
      {R"({"x":")" + std::string(33 * kMiB, 'a') + "\"}", false},
  };
  for (const auto& [text, refused] : cases) {
    bool threw = false;
    const std::size_t heap = heap_of([&, &text = text] {
      try {
        JsonObject object(text, limits);
        (void)object.find("a");
      } catch (const JsonError& error) {
        threw = error.fault() == Fault::kTooMuch;
      }
    });
    EXPECT_EQ(threw, refused) << text.substr(0, 20);
    EXPECT_LT(heap, 7 * text.size() + 32 * kMiB) << text.substr(0, 20);
  }
}

TEST(JsonReader, LongAndManyKeysTakeNoMoreThanTheirText) {
  JsonLimits limits;
  limits.bytes = 40 * kMiB;
  std::string text = "{";
  for (std::size_t i = 0; i < limits::kJsonMembersMax; ++i) {
    text += (i == 0 ? "\"" : ",\"") + std::to_string(i) + std::string(2000, 'k') + "\":0";
  }
  text += "}";
  EXPECT_LT(heap_of([&] { JsonObject object(text, limits); }), 2 * text.size());
}

TEST(JsonReader, ManySmallContainersTakeLinearTime) {
  const std::string text = repeated(R"({"x":[{})", ",{}", 300'000, "]}");
  // Processor time, so that a busy machine does not count; quadratic time would be minutes of it.
  const std::clock_t start = std::clock();
  JsonObject object(text, {});
  EXPECT_LT(static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC, 20.0);
}

}  // namespace
}  // namespace spel
