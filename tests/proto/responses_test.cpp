#include "proto/responses.h"

#include <cmath>
#include <gtest/gtest.h>
#include <limits>
#include <nlohmann/json.hpp>
#include <string>

#include "proto/sse.h"
#include "tests/proto/whole_answer.h"

namespace spel::proto {
namespace {

using nlohmann::json;

const ResponseHead kHead = {"cmpl-1", 1700000000, "spel-21m", ""};

Receipt sample_receipt() {
  Receipt receipt;
  receipt.prompt_tokens = 10;
  receipt.cached_tokens = 4;
  receipt.completion_tokens = 5;
  receipt.prompt_seconds = 0.5;
  receipt.decode_seconds = 0.25;
  receipt.draft_enabled = true;
  receipt.k = 4;
  receipt.governor = GovernorKind::kTrip;
  receipt.rounds = 2;
  receipt.ar_rounds = 1;
  receipt.proposed = 8;
  receipt.accepted = 2;
  receipt.discarded = 1;
  receipt.accepted_by_position = {1, 1, 0, 0};
  receipt.c = 0.2;
  receipt.v = 1.5;
  receipt.tokens_per_second = 20.0;
  receipt.speedup = 1.1;
  return receipt;
}

Choice sample_choice() {
  Choice choice;
  choice.text = "hi";
  choice.finish_reason = FinishReason::kLength;
  choice.tokens = {{104, "h", -0.1F, {{104, "h", -0.1F}, {105, "i", -2.5F}}, 0},
                   {105, "i", std::nullopt, {}, 1}};
  return choice;
}

TEST(Responses, ACompletionHasTheShapeClientsKnow) {
  const auto body = json::parse(completion_response(kHead, {sample_choice()}, sample_receipt()));
  EXPECT_EQ(body["object"], "text_completion");
  EXPECT_EQ(body["choices"][0]["text"], "hi");
  // mudler/LocalAI#788, huggingface/text-generation-inference#2344
  EXPECT_EQ(body["choices"][0]["finish_reason"], "length");
  EXPECT_TRUE(body["choices"][0]["logprobs"].is_null());
  EXPECT_EQ(body["usage"], json::parse(R"({"prompt_tokens":10,"completion_tokens":5,
      "total_tokens":15,"prompt_tokens_details":{"cached_tokens":4},
      "completion_tokens_details":{"reasoning_tokens":0,"accepted_prediction_tokens":2,
                                   "rejected_prediction_tokens":6}})"));
  EXPECT_EQ(body["timings"]["prompt_n"], 6);
  EXPECT_EQ(body["timings"]["cache_n"], 4);
  EXPECT_EQ(body["timings"]["prompt_per_second"], 12.0);
  EXPECT_EQ(body["timings"]["draft_n"], 8);
  EXPECT_EQ(body["timings"]["draft_n_accepted"], 2);
  EXPECT_EQ(body["speculation"]["alpha"], 0.25);
  EXPECT_EQ(body["speculation"]["governor"], "trip");
  EXPECT_EQ(body["speculation"]["accepted_by_position"], json::parse("[1,1,0,0]"));
  EXPECT_TRUE(body["speculation"]["draft_reason"].is_null());
}

// lmstudio-ai/mlx-engine#280
TEST(Responses, SpeculationSaysWhyThereWasNoDraft) {
  Receipt receipt;
  receipt.draft_reason = "no draft model";
  const auto body = json::parse(completion_response(kHead, {Choice()}, receipt));
  EXPECT_EQ(body["speculation"]["draft_enabled"], false);
  EXPECT_EQ(body["speculation"]["draft_reason"], "no draft model");
  EXPECT_TRUE(body["speculation"]["c"].is_null());
  EXPECT_TRUE(body["speculation"]["speedup"].is_null());
  EXPECT_FALSE(body["timings"].contains("draft_n"));
}

// ggml-org/llama.cpp#27972, ggml-org/llama.cpp#27196
TEST(Responses, LogprobsHaveOneEntryForEachToken) {
  Choice choice = sample_choice();
  choice.with_logprobs = true;
  choice.with_token_ids = true;
  const auto legacy = json::parse(completion_chunk(kHead, choice, {}))["choices"][0];
  EXPECT_EQ(legacy["logprobs"], json::parse(R"({"text_offset":[0,1],"token_logprobs":[-0.1,null],
      "tokens":["h","i"],"top_logprobs":[{"h":-0.1,"i":-2.5},null]})"));
  EXPECT_EQ(legacy["token_ids"], json::parse("[104,105]"));
  const auto chat = json::parse(chat_chunk(kHead, choice, {}))["choices"][0];
  EXPECT_EQ(chat["logprobs"]["content"][0], json::parse(R"({"token":"h","logprob":-0.1,
      "bytes":[104],"top_logprobs":[{"token":"h","logprob":-0.1,"bytes":[104]},
      {"token":"i","logprob":-2.5,"bytes":[105]}]})"));
}

TEST(Responses, LogprobsOfBytesAreReadable) {
  Choice choice;
  choice.with_logprobs = true;
  choice.tokens = {{200, "\xE9\x0A", -std::numeric_limits<float>::infinity(), {}, 0}};
  const auto legacy = json::parse(completion_chunk(kHead, choice, {}))["choices"][0]["logprobs"];
  EXPECT_EQ(legacy["tokens"][0], "bytes:\\xe9\\x0a");
  EXPECT_EQ(legacy["token_logprobs"][0], -9999.0);
  const auto chat = json::parse(chat_chunk(kHead, choice, {}))["choices"][0]["logprobs"];
  EXPECT_EQ(chat["content"][0]["bytes"], json::parse("[233,10]"));
}

// ollama/ollama#4357
TEST(Responses, FinishReasonIsNullUntilTheLastChunk) {
  Choice choice;
  choice.text = "x";
  EXPECT_TRUE(
      json::parse(completion_chunk(kHead, choice, {}))["choices"][0]["finish_reason"].is_null());
  EXPECT_TRUE(json::parse(chat_chunk(kHead, choice, {}))["choices"][0]["finish_reason"].is_null());
  choice.finish_reason = FinishReason::kStop;
  choice.stop_reason = "END";
  const auto last = json::parse(completion_chunk(kHead, choice, {}))["choices"][0];
  EXPECT_EQ(last["finish_reason"], "stop");
  EXPECT_EQ(last["stop_reason"], "END");
}

TEST(Responses, UsageIsNullOnOtherChunksOnlyWhenAskedFor) {
  const Receipt receipt = sample_receipt();
  const Choice choice = sample_choice();
  EXPECT_FALSE(json::parse(completion_chunk(kHead, choice, {})).contains("usage"));
  EXPECT_TRUE(
      json::parse(completion_chunk(kHead, choice, {.usage_null = true}))["usage"].is_null());
  const auto last = json::parse(completion_chunk(kHead, choice, {.receipt = &receipt}));
  EXPECT_EQ(last["usage"]["completion_tokens"], 5);
  EXPECT_TRUE(last.contains("timings"));
  EXPECT_TRUE(last.contains("speculation"));
  const auto usage = json::parse(completion_usage_chunk(kHead, receipt));
  EXPECT_EQ(usage["choices"], json::array());
  EXPECT_EQ(usage["usage"]["total_tokens"], 15);
  EXPECT_EQ(json::parse(chat_usage_chunk(kHead, receipt))["object"], "chat.completion.chunk");
}

TEST(Responses, AChatAnswerHasTheShapeClientsKnow) {
  const auto body = json::parse(chat_response(kHead, {sample_choice()}, sample_receipt()));
  EXPECT_EQ(body["object"], "chat.completion");
  EXPECT_EQ(body["choices"][0]["message"]["role"], "assistant");
  EXPECT_EQ(body["choices"][0]["message"]["content"], "hi");
  const auto role = json::parse(chat_role_chunk(kHead, 1, {}));
  EXPECT_EQ(role["choices"][0]["index"], 1);
  EXPECT_EQ(role["choices"][0]["delta"], json::parse(R"({"role":"assistant","content":""})"));
  EXPECT_EQ(json::parse(chat_chunk(kHead, Choice(), {}))["choices"][0]["delta"], json::object());
}

TEST(Responses, DraftPositionsComeWithTheOffsetsOfTheirTokens) {
  Choice choice = sample_choice();
  choice.draft_positions = {-1, 0};
  const auto body = json::parse(completion_chunk(kHead, choice, {}));
  EXPECT_EQ(body["choices"][0]["spel"],
            json::parse(R"({"draft_positions":[-1,0],"text_offsets":[0,1]})"));
}

TEST(Responses, NoNumberIsEverNotFinite) {
  Receipt receipt;
  receipt.c = std::nan("");
  receipt.v = HUGE_VAL;
  receipt.tokens_per_second = std::nan("");
  receipt.speedup = -HUGE_VAL;
  const auto body = json::parse(completion_response(kHead, {Choice()}, receipt));
  EXPECT_TRUE(body["speculation"]["v"].is_null());
  EXPECT_EQ(body["timings"]["predicted_per_second"], 0.0);
  EXPECT_EQ(body["timings"]["prompt_per_second"], 0.0);
}

TEST(Responses, ReceiptsOfSeveralSequencesAddUp) {
  Receipt total = sample_receipt();
  add(total, sample_receipt(), false);
  EXPECT_EQ(total.prompt_tokens, 10U);
  EXPECT_EQ(total.completion_tokens, 10U);
  EXPECT_EQ(total.accepted, 4U);
  EXPECT_EQ(total.accepted_by_position, (std::vector<std::size_t>{2, 2, 0, 0}));
  EXPECT_DOUBLE_EQ(total.c, 0.2);
  EXPECT_DOUBLE_EQ(total.tokens_per_second, 40.0);
  EXPECT_DOUBLE_EQ(total.decode_seconds, 0.25);
  add(total, sample_receipt(), true);
  EXPECT_EQ(total.prompt_tokens, 20U);
  Receipt from_nothing;
  add(from_nothing, sample_receipt(), true);
  EXPECT_EQ(usage_json(from_nothing), usage_json(sample_receipt()));
  EXPECT_EQ(speculation_json(from_nothing), speculation_json(sample_receipt()));
}

TEST(Responses, ModelsAreAListOfOne) {
  ModelCard card;
  card.id = "spel-21m";
  card.max_seq = 4096;
  const auto list = json::parse(models_response(card));
  EXPECT_EQ(list["object"], "list");
  EXPECT_EQ(list["data"][0], json::parse(model_response(card)));
  EXPECT_EQ(list["data"][0]["id"], "spel-21m");
}

TEST(Sse, FramesEndWithABlankLine) {
  EXPECT_EQ(sse_data("{}"), "data: {}\n\n");
  EXPECT_EQ(sse_done(), "data: [DONE]\n\n");
  EXPECT_EQ(sse_ping(), ":\n\n");
  // ollama/ollama#17846
  const std::string frame = sse_error(server_error("The engine failed."));
  EXPECT_EQ(frame.rfind("data: {\"error\":{", 0), 0U);
  EXPECT_EQ(frame.substr(frame.size() - 2), "\n\n");
}

TEST(Sse, TextWithLineBreaksStaysOneFrame) {
  Choice choice;
  choice.text = "a\n\nb\r\n";
  const std::string frame = sse_data(completion_chunk(kHead, choice, {}));
  EXPECT_EQ(frame.find('\n'), frame.size() - 2);
  EXPECT_EQ(frame.find('\r'), std::string::npos);
}

TEST(Responses, HealthIsJson) {
  EXPECT_EQ(json::parse(health_body()), json::parse(R"({"status":"ok"})"));
  const auto loading = json::parse(health_unavailable_body("loading"))["error"];
  EXPECT_EQ(loading["type"], "unavailable_error");
  EXPECT_EQ(loading["code"], "loading");
}

}  // namespace
}  // namespace spel::proto
