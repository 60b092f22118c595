#include "proto/json_text.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <string>

#include "proto/error_body.h"
#include "tests/proto/refusal.h"

namespace spel::proto {
namespace {

ApiError refusal(const std::string& text, const JsonLimits& limits = {}) {
  return refusal_of([&] { static_cast<void>(parse_json_object(text, limits)); });
}

std::string nested(std::size_t arrays) {
  return R"({"x":)" + std::string(arrays, '[') + std::string(arrays, ']') + "}";
}

TEST(JsonText, RefusesWhatIsNotOneStrictJsonObject) {
  const std::string bad[] = {"",
                             " ",
                             "{",
                             "}",
                             "[]",
                             "1",
                             "null",
                             "\"a\"",
                             "{}{}",
                             "{} x",
                             "{}]",
                             R"({: "prompt":"hi"})",  // mozilla-ai/llamafile#116
                             R"({"a":1,})",
                             R"({"a" 1})",
                             "{a:1}",
                             "{'a':1}",
                             R"({"a":NaN})",
                             R"({"a":-Infinity})",
                             R"({"a":1e400})",
                             R"({"a":-1e400})",
                             R"({"a":01})",
                             R"({"a":.5})",
                             R"({"a":+1})",
                             "{/* c */}",
                             "{} // c",
                             R"({"a":"\ud800"})",
                             R"({"a":"\udc00\ud800"})",
                             "{\"a\":\"\xC3\"}",
                             "{\"a\":\"\xFF\"}",
                             "{\"a\":\"\xED\xA0\x80\"}",
                             "{\"a\":\"\xC0\x80\"}",
                             "{\"\xFF\":1}",
                             "{\"a\":\"\n\"}",
                             "{\"a\":tru}",
                             std::string("{}\0", 3),
                             std::string("{}\0{}", 5),
                             std::string("{\0}", 3),
                             std::string("\0", 1)};
  for (const auto& text : bad) {
    const ApiError error = refusal(text);
    EXPECT_EQ(error.status, 400) << text;
    EXPECT_EQ(error.type, "invalid_request_error") << text;
    EXPECT_EQ(error.code, "invalid_json") << text;
  }
}

TEST(JsonText, RefusesADuplicateKeyAtAnyLevelNamingIt) {
  const ApiError top = refusal(R"({"seed":1,"a":{"seed":2},"seed":1})");
  EXPECT_EQ(top.status, 400);
  EXPECT_EQ(top.param, "seed");
  EXPECT_NE(top.message.find("\"seed\""), std::string::npos);
  const ApiError inner = refusal(R"({"a":[{"b":1,"b":null}]})");
  EXPECT_EQ(inner.param, "");
  EXPECT_EQ(inner.code, "duplicate_key");
  // The same key, spelt with an escape.
  EXPECT_EQ(refusal(R"({"ab":1,"\u0061b":2})").code, "duplicate_key");
  EXPECT_NO_THROW(static_cast<void>(parse_json_object(R"({"a":{"a":{"a":1}}})", {})));
}

TEST(JsonText, ADuplicateKeyOfAMegabyteGivesAShortMessage) {
  const std::string key(500'000, 'k');
  const ApiError error = refusal("{\"" + key + "\":1,\"" + key + "\":2}");
  EXPECT_LT(error_body(error).size(), 512U);
}

// ggml-org/llama.cpp#27434
TEST(JsonText, LimitsDepthWhileParsing) {
  EXPECT_NO_THROW(static_cast<void>(parse_json_object(nested(31), {})));
  for (const std::size_t arrays : {32U, 64U, 3000U, 100'000U}) {
    EXPECT_EQ(refusal(nested(arrays)).code, "json_too_deep") << arrays;
  }
  // Never closed: found before the end of the text is.
  EXPECT_EQ(refusal("{\"x\":" + std::string(200'000, '[')).code, "json_too_deep");
  std::string objects;
  for (int i = 0; i < 1000; ++i) {
    objects += "{\"a\":";
  }
  EXPECT_EQ(refusal(objects).code, "json_too_deep");
}

TEST(JsonText, RefusesATextOverTheByteLimitWith413) {
  const JsonLimits limits = {.bytes = 10, .depth = 4};
  EXPECT_NO_THROW(static_cast<void>(parse_json_object(R"({"a": 12})", limits)));
  EXPECT_NO_THROW(static_cast<void>(parse_json_object(R"({"a": 123})", limits)));
  EXPECT_EQ(refusal(R"({"a": 1234})", limits).status, 413);
}

TEST(JsonText, SkipsALeadingByteOrderMarkAndKeepsNul) {
  auto object = parse_json_object("\xEF\xBB\xBF{\"a\":\"x\\u0000y\"}", {});
  EXPECT_EQ(object.find("a")->text(), std::string("x\0y", 3));
}

TEST(JsonText, RefusesMoreThanAServerReadsAsOneError) {
  JsonLimits few;
  few.values = 3;
  EXPECT_EQ(refusal(R"({"unknown":[1,2,3]})", few).code, "json_too_large");
  EXPECT_EQ(refusal(R"({"unknown":[1,2,3]})", few).status, 400);
  JsonLimits small;
  small.parts = 3;
  auto object = parse_json_object(R"({"known":["a","b","c"],"unknown":["a","b","c"]})", small);
  EXPECT_EQ(refusal_of([&] { static_cast<void>(find_member(object, "known")); }).code,
            "json_too_large");
}

TEST(ErrorBody, HasTheFourMembersAndTheContextCounts) {
  const auto plain = nlohmann::json::parse(error_body(invalid_request("no", "seed", "why")));
  EXPECT_EQ(plain, nlohmann::json::parse(
                       R"({"error":{"message":"no","type":"invalid_request_error",
                           "param":"seed","code":"why"}})"));
  const auto bare = nlohmann::json::parse(error_body(server_error("oops")));
  EXPECT_TRUE(bare["error"]["param"].is_null());
  EXPECT_TRUE(bare["error"]["code"].is_null());
  // ollama/ollama#4967, ikawrakow/ik_llama.cpp#2420
  const ApiError overflow = context_overflow(4097, 4096);
  EXPECT_EQ(overflow.status, 400);
  const auto body = nlohmann::json::parse(error_body(overflow))["error"];
  EXPECT_EQ(body["n_prompt_tokens"], 4097);
  EXPECT_EQ(body["n_ctx"], 4096);
  EXPECT_EQ(body["type"], "exceed_context_size_error");
  EXPECT_EQ(body["code"], "context_length_exceeded");
  // litellm and LangChain know an overflow by these words of the message.
  const std::string message = body["message"];
  EXPECT_NE(message.find("maximum context length is 4096 tokens"), std::string::npos) << message;
  EXPECT_NE(message.find("context_length_exceeded"), std::string::npos) << message;
  EXPECT_NE(message.find("4097"), std::string::npos) << message;
}

TEST(ErrorBody, EachStatusHasItsType) {
  EXPECT_EQ(authentication_error("x").status, 401);
  EXPECT_EQ(authentication_error("x").type, "authentication_error");
  EXPECT_EQ(model_not_found("m").status, 404);
  EXPECT_EQ(model_not_found("m").param, "model");
  EXPECT_EQ(model_not_found("m").code, "model_not_found");
  // LangChain takes a 404 without a code for a missing model.
  EXPECT_EQ(not_found("x").code, "not_found");
  EXPECT_EQ(unavailable("x").status, 503);
  EXPECT_EQ(unavailable("x").type, "unavailable_error");
  EXPECT_EQ(http_error(505, "x").type, "server_error");
  EXPECT_EQ(http_error(431, "x").type, "invalid_request_error");
}

TEST(ErrorBody, IsValidUtf8WhateverTheMessage) {
  const auto body = error_body(model_not_found("a\"b\\c\nd\xFF"));
  EXPECT_TRUE(nlohmann::json::accept(body));
  EXPECT_EQ(body.find('\n'), std::string::npos);
}

}  // namespace
}  // namespace spel::proto
