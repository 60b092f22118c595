#include "proto/openapi.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>

#include "config/base/limits.h"
#include "proto/chat.h"
#include "proto/completion.h"
#include "proto/error_body.h"
#include "proto/responses.h"
#include "proto/tokenize.h"
#include "tests/proto/schema_check.h"
#include "tests/proto/whole_answer.h"

namespace spel::proto {
namespace {

using nlohmann::json;
using ::testing::IsEmpty;

const json& document() {
  static const json value = json::parse(openapi_json());
  return value;
}

void expect_valid(const std::string& schema, const std::string& text) {
  EXPECT_THAT(schema_violations(document(), schema, json::parse(text)), IsEmpty()) << text;
}

void collect_references(const json& value, std::set<std::string>& references) {
  if (value.is_object() && value.contains("$ref")) {
    references.insert(value["$ref"].get<std::string>());
  }
  if (value.is_structured()) {
    for (const auto& member : value) {
      collect_references(member, references);
    }
  }
}

TEST(OpenApi, DescribesEveryPath) {
  for (const char* path : {"/v1/completions",
                           "/v1/chat/completions",
                           "/v1/models",
                           "/v1/models/{id}",
                           "/tokenize",
                           "/detokenize",
                           "/tokenizer_info",
                           "/v1/notebanks",
                           "/v1/notebanks/{bank}",
                           "/v1/notebanks/{bank}/notes/{id}",
                           "/v1/notebanks/{bank}/write",
                           "/v1/notebanks/{bank}/address",
                           "/v1/notebanks/{bank}/replay",
                           "/health",
                           "/health/live",
                           "/health/ready",
                           "/metrics",
                           "/v1/stats",
                           "/",
                           "/openapi.json"}) {
    EXPECT_TRUE(document()["paths"].contains(path)) << path;
  }
  EXPECT_EQ(document()["openapi"], "3.1.0");
}

TEST(OpenApi, EveryReferenceLeadsSomewhere) {
  std::set<std::string> references;
  collect_references(document(), references);
  EXPECT_FALSE(references.empty());
  for (const auto& reference : references) {
    EXPECT_TRUE(document().contains(json::json_pointer(reference.substr(1)))) << reference;
  }
}

TEST(OpenApi, NumbersAreThoseOfTheCode) {
  const json& schemas = document()["components"]["schemas"];
  const json& generation = schemas["Generation"]["properties"];
  EXPECT_EQ(generation["n"]["maximum"], limits::kChoicesMax);
  EXPECT_EQ(generation["stop"]["anyOf"][2]["maxItems"], limits::kStopStringsMax);
  EXPECT_EQ(generation["stop"]["anyOf"][1]["maxLength"], limits::kStopBytesMax);
  EXPECT_EQ(generation["logit_bias"]["maxProperties"], limits::kLogitBiasMax);
  EXPECT_EQ(generation["stop_token_ids"]["maxItems"], limits::kStopTokensMax);
  EXPECT_EQ(generation["model"]["maxLength"], limits::kModelNameMax);
  EXPECT_EQ(schemas["SpeculationRequest"]["properties"]["k"]["maximum"], limits::kSpecKMax);
  EXPECT_EQ(schemas["SpeculationRequest"]["properties"]["window"]["maximum"],
            limits::kGovernorWindowMax);
  EXPECT_EQ(schemas["NoteBankField"]["properties"]["top"]["maximum"], limits::kNoteTopMax);
  const json& completion = schemas["CompletionRequest"]["allOf"][1]["properties"];
  EXPECT_EQ(completion["prompt"]["oneOf"][1]["maxItems"], limits::kPromptsMax);
  EXPECT_EQ(completion["logprobs"]["maximum"], limits::kTopLogprobsMax);
  EXPECT_EQ(schemas["TokenLogprob"]["properties"]["top_logprobs"]["maxItems"],
            limits::kTopLogprobsMax);
  const json& chat = schemas["ChatRequest"]["allOf"][1]["properties"];
  EXPECT_EQ(chat["messages"]["maxItems"], limits::kMessagesMax);
}

TEST(OpenApi, TheParserRefusesWhatTheSchemaRefuses) {
  const auto parses = [](const std::string& body) {
    try {
      static_cast<void>(parse_completion_request(body));
      return true;
    } catch (const RequestError&) {
      return false;
    }
  };
  const json values = json::parse(
      R"([null,true,false,0,1,-1,2,0.5,1.5,16,17,6,-2,-3,1e30,18446744073709551615,"","a","off","text",
          [],["a"],[1],[""],[[1]],[1,"a"],{},{"a":1},{"7":1},{"07":1},{"7":101},{"type":"text"},
          {"bank":"b"},{"bank":"../b"},{"bank":"b","a":1},{"k":3},{"enabled":false},{"type":"text","a":1},{"mode":"x"},{"include_usage":true}])");
  std::set<std::string> fields;
  for (const auto& part : document()["components"]["schemas"]["CompletionRequest"]["allOf"]) {
    const json& schema =
        part.contains("$ref") ? document()["components"]["schemas"]["Generation"] : part;
    for (const auto& [name, rule] : schema["properties"].items()) {
      fields.insert(name);
    }
  }
  EXPECT_GT(fields.size(), 35U);
  for (const auto& field : fields) {
    if (field == "stream_options" || field == "best_of" || field == "min_tokens") {
      continue;  // What they may be depends on other members, which no schema here says.
    }
    for (const auto& value : values) {
      json body = {{"prompt", "a"}};
      body[field] = value;
      const bool valid = schema_violations(document(), "CompletionRequest", body).empty();
      EXPECT_EQ(parses(body.dump()), valid) << body;
    }
  }
}

class Answers : public ::testing::Test {
 protected:
  Answers() {
    receipt_.prompt_tokens = 3;
    receipt_.completion_tokens = 2;
    receipt_.draft_enabled = true;
    receipt_.k = 4;
    receipt_.rounds = 1;
    receipt_.proposed = 4;
    receipt_.accepted = 1;
    receipt_.accepted_by_position = {1, 0, 0, 0};
    receipt_.c = 0.3;
    choice_.text = "h\xC3\xA9";
    choice_.tokens = {{104, "h", -0.5F, {{104, "h", -0.5F}}, 0}, {200, "\xC3", -1.0F, {}, 1}};
    choice_.draft_positions = {-1, 0};
    choice_.with_token_ids = true;
    choice_.with_logprobs = true;
    last_ = choice_;
    last_.finish_reason = FinishReason::kStop;
    last_.stop_reason = "\n";
    stopped_.finish_reason = FinishReason::kStop;
    stopped_.stop_token = 7;
    bare_.finish_reason = FinishReason::kLength;
  }

  ResponseHead head_ = {"cmpl-1", 1, "m", "fp"};
  Receipt receipt_;
  Choice choice_;
  Choice last_;
  Choice bare_;
  Choice stopped_;
};

TEST_F(Answers, OfCompletionsFollowTheSchema) {
  expect_valid("CompletionResponse",
               completion_response(head_, {last_, bare_, stopped_}, receipt_));
  Receipt normalized = receipt_;
  normalized.normalized_characters = 3;
  expect_valid("CompletionResponse", completion_response(head_, {last_}, normalized));
  expect_valid("CompletionResponse", completion_response(head_, {bare_}, Receipt()));
  expect_valid("CompletionChunk", completion_chunk(head_, choice_, {}));
  expect_valid("CompletionChunk", completion_chunk(head_, choice_, {.usage_null = true}));
  expect_valid("CompletionChunk", completion_chunk(head_, last_, {.receipt = &receipt_}));
  expect_valid("CompletionChunk", completion_chunk(head_, stopped_, {.usage = UsageSoFar{3, 4}}));
  expect_valid("CompletionChunk", completion_usage_chunk(head_, receipt_));
}

TEST_F(Answers, OfChatFollowTheSchema) {
  expect_valid("ChatResponse", chat_response(head_, {last_, bare_, stopped_}, receipt_));
  expect_valid("ChatChunk", chat_role_chunk(head_, 0, {}));
  expect_valid("ChatChunk", chat_chunk(head_, choice_, {.usage_null = true}));
  expect_valid("ChatChunk", chat_chunk(head_, bare_, {.receipt = &receipt_}));
  expect_valid("ChatChunk", chat_usage_chunk(head_, receipt_));
}

/// Of an answer that is short.
template <typename Answer>
std::string one_part(Answer answer) {
  std::string text;
  EXPECT_FALSE(answer.next(text));
  return text;
}

TEST_F(Answers, OfTheRestFollowTheSchema) {
  ModelCard card;
  card.id = "m";
  expect_valid("Model", model_response(card));
  expect_valid("ModelList", models_response(card));
  const BytesOf bytes = [](TokenId token) { return token == 1 ? "a" : "\xFF"; };
  expect_valid("TokenizeResponse", one_part(TokenizeAnswer({1, 2}, bytes, true, 8)));
  expect_valid("TokenizeResponse", one_part(TokenizeAnswer({1}, bytes, false, 8)));
  expect_valid("DetokenizeResponse", one_part(DetokenizeAnswer({1}, bytes)));
  expect_valid("TokenizerInfo", tokenizer_info_response({8, 128, "{{ x }}", std::nullopt, "</s>"}));
  expect_valid("Health", health_body());
  expect_valid("Error", health_unavailable_body("loading"));
}

TEST(OpenApi, EveryErrorFollowsTheSchema) {
  for (const auto& error :
       {invalid_request("m", "p", "c"), context_overflow(9, 8), authentication_error("m"),
        forbidden("m"), not_found("m"), model_not_found("x"), method_not_allowed("m"),
        not_supported("m", "p"), unavailable("m"), server_error("m"), http_error(408, "m"),
        http_error(504, "m")}) {
    expect_valid("Error", error_body(error));
  }
}

TEST(OpenApi, TheSchemaCheckFindsFaults) {
  for (const auto& [schema, text] : std::vector<std::pair<std::string, std::string>>{
           {"Error", R"({"error":{"message":"m","type":"odd","param":null,"code":null}})"},
           {"Error", R"({"error":{"message":"m","type":"server_error","param":null}})"},
           {"Error", R"({"error":"m"})"},
           {"Health", R"({"status":"ok","x":1})"},
           {"TokenIds", "[1,-1]"},
           {"TokenIds", "[1.5]"},
           {"FinishReason", R"("eos_token")"},
           {"Measured", "0"}}) {
    EXPECT_FALSE(schema_violations(document(), schema, json::parse(text)).empty()) << text;
  }
}

}  // namespace
}  // namespace spel::proto
