#include "proto/tokenize.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "proto/vocabulary.h"
#include "tests/proto/refusal.h"

namespace spel::proto {
namespace {

using nlohmann::json;

TEST(Tokenize, ReadsContentUnderEitherName) {
  const auto request = parse_tokenize_request(R"({"content":"","with_pieces":true,"x":1})");
  EXPECT_EQ(request.content, "");
  EXPECT_TRUE(request.with_pieces);
  EXPECT_FALSE(request.add_special);
  EXPECT_EQ(request.unknown_fields, 1U);
  EXPECT_EQ(parse_tokenize_request(R"({"prompt":"a","model":"m"})").content, "a");
  for (const char* body :
       {"{}", R"({"content":1})", R"({"content":null})", R"({"content":["a"]})"}) {
    EXPECT_EQ(refusal_of([&] { static_cast<void>(parse_tokenize_request(body)); }).param, "content")
        << body;
  }
}

TEST(Tokenize, DetokenizeRefusesWhatIsNotAnArrayOfIds) {
  EXPECT_EQ(parse_detokenize_request(R"({"tokens":[1,2]})").tokens, (std::vector<TokenId>{1, 2}));
  EXPECT_TRUE(parse_detokenize_request(R"({"tokens":[]})").tokens.empty());
  for (const char* tokens : {"null", "1", "{}", R"(["1"])", "[-1]", "[1.5]", "[true]",
                             "[4294967295]", "[null]", "[[1]]"}) {
    const std::string body = R"({"tokens":)" + std::string(tokens) + "}";
    EXPECT_EQ(refusal_of([&] { static_cast<void>(parse_detokenize_request(body)); }).param,
              "tokens")
        << tokens;
  }
  const auto request = parse_detokenize_request(R"({"tokens":[127]})");
  EXPECT_NO_THROW(check_token_ids(request, 128));
  EXPECT_EQ(refusal_of([&] { check_token_ids(request, 127); }).param, "tokens");
}

/// Of token i the i-th byte string.
BytesOf bytes_of(std::vector<std::string> pieces) {
  return [pieces = std::move(pieces)](TokenId token) -> std::string_view {
    return pieces.at(static_cast<std::size_t>(token));
  };
}

/// All parts of an answer, joined; none is much larger than a part may be.
template <typename Answer>
std::string whole(Answer answer) {
  std::string text;
  for (bool more = true; more;) {
    std::string part;
    more = answer.next(part);
    EXPECT_LT(part.size(), kAnswerPartBytes + 1024);
    text += part;
  }
  return text;
}

TEST(Tokenize, PiecesThatAreNotTextAreBytes) {
  const BytesOf bytes = bytes_of({"a", "\xE9", "\"\xC3\xA9\n"});
  EXPECT_EQ(whole(TokenizeAnswer({0, 1, 2}, bytes, false, 64)),
            R"({"tokens":[0,1,2],"count":3,"max_model_len":64})");
  EXPECT_EQ(whole(TokenizeAnswer({}, bytes, true, 64)),
            R"({"tokens":[],"count":0,"max_model_len":64})");
  EXPECT_EQ(
      json::parse(whole(TokenizeAnswer({0, 1, 2}, bytes, true, 64)))["tokens"],
      json::parse("[{\"id\":0,\"piece\":\"a\"},{\"id\":1,\"piece\":[233]},{\"id\":2,\"piece\":"
                  "\"\\\"\xC3\xA9\\n\"}]"));
  EXPECT_EQ(whole(DetokenizeAnswer({0, 1}, bytes)),
            "{\"content\":\"a\xEF\xBF\xBD\",\"prompt\":\"a\xEF\xBF\xBD\"}");
  EXPECT_EQ(whole(DetokenizeAnswer({}, bytes)), R"({"content":"","prompt":""})");
}

TEST(Tokenize, ALongAnswerComesInPartsThatAddUp) {
  // Characters of three bytes, a byte a token: parts end within them.
  const BytesOf bytes = bytes_of({"\xE2", "\x82", "\xAC", "x"});
  std::vector<TokenId> tokens;
  std::string text;
  for (std::size_t i = 0; i < 50'000; ++i) {
    tokens.insert(tokens.end(), {0, 1, 2});
    text += "\xE2\x82\xAC";
  }
  const json answer = json::parse(whole(TokenizeAnswer(tokens, bytes, true, 64)));
  ASSERT_EQ(answer["tokens"].size(), tokens.size());
  EXPECT_EQ(answer["count"], tokens.size());
  EXPECT_EQ(answer["tokens"][149'999], json::parse(R"({"id":2,"piece":[172]})"));
  const json back = json::parse(whole(DetokenizeAnswer(tokens, bytes)));
  EXPECT_EQ(back["content"].get<std::string>(), text);
  EXPECT_EQ(back["prompt"], back["content"]);
}

}  // namespace
}  // namespace spel::proto
