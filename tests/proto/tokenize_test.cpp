#include "proto/tokenize.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <string>

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

TEST(Tokenize, PiecesThatAreNotTextAreBytes) {
  const std::vector<TokenPiece> tokens = {{7, "a"}, {200, "\xE9"}};
  EXPECT_EQ(json::parse(tokenize_response(tokens, false, 64)),
            json::parse(R"({"tokens":[7,200],"count":2,"max_model_len":64})"));
  EXPECT_EQ(json::parse(tokenize_response(tokens, true, 64))["tokens"],
            json::parse(R"([{"id":7,"piece":"a"},{"id":200,"piece":[233]}])"));
  EXPECT_EQ(json::parse(detokenize_response("a\xE9"))["content"], "a\xEF\xBF\xBD");
}

}  // namespace
}  // namespace spel::proto
