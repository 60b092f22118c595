#include "proto/completion.h"

#include <gtest/gtest.h>
#include <limits>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "proto/vocabulary.h"
#include "tests/proto/refusal.h"

namespace spel::proto {
namespace {

using nlohmann::json;

CompletionRequest parse(const std::string& body) { return parse_completion_request(body); }

/// A body with a valid prompt and `member` added as written.
std::string with(const std::string& member) { return R"({"prompt":"a",)" + member + "}"; }

ApiError refusal(const std::string& body) {
  return refusal_of([&] { static_cast<void>(parse(body)); });
}

void expect_refused(const std::string& member, const std::string& param) {
  const ApiError error = refusal(with(member));
  EXPECT_EQ(error.status, 400) << member;
  EXPECT_EQ(error.param, param) << member;
  EXPECT_EQ(error.type, "invalid_request_error") << member;
}

// vllm-project/vllm#6707
TEST(Completion, APromptAloneGetsTheDocumentedDefaults) {
  const auto request = parse(R"({"prompt":"hi"})");
  const auto& options = request.options;
  ASSERT_EQ(request.prompts.size(), 1U);
  EXPECT_EQ(std::get<std::string>(request.prompts[0]), "hi");
  EXPECT_EQ(options.max_tokens, 16U);
  EXPECT_FALSE(options.temperature.has_value());
  EXPECT_FALSE(options.top_p.has_value());
  EXPECT_FALSE(options.top_k.has_value());
  EXPECT_FALSE(options.min_p.has_value());
  EXPECT_FALSE(options.repetition_penalty.has_value());
  EXPECT_EQ(options.n, 1U);
  EXPECT_FALSE(options.seed);
  EXPECT_FALSE(options.logprobs);
  EXPECT_FALSE(options.stream);
  EXPECT_FALSE(options.speculation.enabled);
  EXPECT_FALSE(options.notebank);
  EXPECT_EQ(options.unknown_fields, 0U);
}

// vllm-project/vllm#19862, and the same for every other field.
TEST(Completion, NullIsAbsentForEveryField) {
  for (const char* name : {"model",
                           "max_tokens",
                           "temperature",
                           "top_k",
                           "top_p",
                           "min_p",
                           "seed",
                           "stop",
                           "n",
                           "best_of",
                           "echo",
                           "logprobs",
                           "logit_bias",
                           "presence_penalty",
                           "frequency_penalty",
                           "repetition_penalty",
                           "stream",
                           "stream_options",
                           "suffix",
                           "user",
                           "stop_token_ids",
                           "ignore_eos",
                           "min_tokens",
                           "response_format",
                           "grammar",
                           "json_schema",
                           "structured_outputs",
                           "tools",
                           "tool_choice",
                           "speculation",
                           "notebank",
                           "return_token_ids"}) {
    const auto request = parse(with("\"" + std::string(name) + "\":null"));
    EXPECT_EQ(request.options.max_tokens, 16U) << name;
    EXPECT_EQ(request.options.unknown_fields, 0U) << name;
  }
  EXPECT_EQ(refusal(R"({"prompt":null})").param, "prompt");
}

// LostRuins/koboldcpp#643
TEST(Completion, NullStopEmptyBiasAndALargeLengthAreFine) {
  const auto request =
      parse(R"({"prompt":"hi","stop":null,"max_tokens":15821,"n":1,"logit_bias":{},"user":""})");
  EXPECT_TRUE(request.options.stop.empty());
  EXPECT_TRUE(request.options.logit_bias.empty());
  EXPECT_EQ(request.options.max_tokens, 15821U);
}

// ollama/ollama#6188
TEST(Completion, AcceptsTheFourFormsOfAPrompt) {
  EXPECT_EQ(parse(R"({"prompt":["a","b"]})").prompts.size(), 2U);
  const auto ids = parse(R"({"prompt":[1,2]})");
  ASSERT_EQ(ids.prompts.size(), 1U);
  EXPECT_EQ(std::get<std::vector<TokenId>>(ids.prompts[0]), (std::vector<TokenId>{1, 2}));
  const auto lists = parse(R"({"prompt":[[1,2],[3]]})");
  ASSERT_EQ(lists.prompts.size(), 2U);
  EXPECT_EQ(std::get<std::vector<TokenId>>(lists.prompts[1]), (std::vector<TokenId>{3}));
}

TEST(Completion, RefusesMixedAndOtherPrompts) {
  for (const char* prompt :
       {R"([1,"a"])",    R"(["a",1])", R"(["a",["b"]])", R"([[1],"a"])", R"([[1],2])",
        R"([1,[2]])",    R"([["a"]])", R"([[1,"a"]])",   R"([[1,[2]]])", "[null]",
        R"(["a",null])", "[[null]]",   "[{}]",           "{}",           "1",
        "true",          "[true]",     "[1,true]",       "[[true]]",     "1.5"}) {
    const ApiError error = refusal(R"({"prompt":)" + std::string(prompt) + "}");
    EXPECT_EQ(error.status, 400) << prompt;
    EXPECT_EQ(error.param, "prompt") << prompt;
  }
}

// vllm-project/vllm#7632, ggml-org/llama.cpp#5246
TEST(Completion, RefusesAnEmptyPromptInEveryForm) {
  for (const char* prompt : {R"("")", R"([""])", "[]", "[[]]", R"(["a",""])", "[[1],[]]"}) {
    const ApiError error = refusal(R"({"prompt":)" + std::string(prompt) + R"(,"max_tokens":4})");
    EXPECT_EQ(error.status, 400) << prompt;
    EXPECT_EQ(error.param, "prompt") << prompt;
  }
  EXPECT_EQ(refusal("{}").param, "prompt");
}

TEST(Completion, TakesAsManyPromptsAsAnyQueueHoldsAndNoMore) {
  const auto body = [](const std::string& prompt, std::size_t count) {
    std::string list = prompt;
    for (std::size_t i = 1; i < count; ++i) {
      list += "," + prompt;
    }
    return R"({"prompt":[)" + list + "]}";
  };
  for (const char* prompt : {R"("a")", "[1]"}) {
    // LangChain sends 20, lm-eval 32 and more.
    for (const std::size_t count : {std::size_t{20}, std::size_t{64}, limits::kPromptsMax}) {
      EXPECT_EQ(parse(body(prompt, count)).prompts.size(), count);
    }
    EXPECT_EQ(refusal(body(prompt, limits::kPromptsMax + 1)).param, "prompt");
  }
}

// ai-dynamo/dynamo#12916, vllm-project/vllm#51795, vllm-project/vllm#35231
TEST(Completion, RefusesTokenIdsOutsideTheVocabulary) {
  constexpr std::size_t kVocab = 128;
  const auto check = [](const std::string& body) { check_token_ids(parse(body), kVocab); };
  EXPECT_NO_THROW(check(R"({"prompt":[0,127]})"));
  for (const char* id :
       {"-1", "128", "4294967295", "2147483647", "2147483648", "9223372036854775807",
        "9223372036854775808", "18446744073709551616", "1.5", "true", "1e30", "-0.5"}) {
    for (const auto& prompt : {"[1,2," + std::string(id) + "]", "[[" + std::string(id) + "]]"}) {
      const ApiError error =
          refusal_of([&] { check(R"({"prompt":)" + prompt + R"(,"max_tokens":1})"); });
      EXPECT_EQ(error.status, 400) << prompt;
      EXPECT_EQ(error.param, "prompt") << prompt;
    }
  }
}

// vllm-project/vllm#54196
TEST(Completion, RefusesStopAndBiasIdsOutsideTheVocabulary) {
  const auto check = [](const std::string& member) { check_token_ids(parse(with(member)), 128); };
  EXPECT_NO_THROW(check(R"("stop_token_ids":[127],"logit_bias":{"127":1})"));
  EXPECT_EQ(refusal_of([&] { check(R"("stop_token_ids":[999999])"); }).param, "stop_token_ids");
  EXPECT_EQ(refusal_of([&] { check(R"("logit_bias":{"128":1})"); }).param, "logit_bias");
  for (const char* ids : {"[-1]", "[true]", "[1.5]", R"(["1"])", "7", "{}", "[[1]]"}) {
    expect_refused("\"stop_token_ids\":" + std::string(ids), "stop_token_ids");
  }
}

// huggingface/text-generation-inference#1088, ggml-org/llama.cpp#4047, vllm-project/vllm#10432
TEST(Completion, ZeroTokensMayBeAskedForAndMinusOneMayNot) {
  for (std::size_t count = 0; count < 4; ++count) {
    EXPECT_EQ(parse(with("\"max_tokens\":" + std::to_string(count))).options.max_tokens, count);
  }
  expect_refused(R"("max_tokens":-1)", "max_tokens");
}

// vllm-project/vllm#6521
TEST(Completion, EchoWithZeroTokensAndLogprobsIsARequest) {
  const auto request =
      parse(R"({"prompt":"Your answer: Yes","max_tokens":0,"echo":true,"logprobs":1})");
  EXPECT_TRUE(request.echo);
  EXPECT_EQ(request.options.max_tokens, 0U);
  EXPECT_EQ(request.options.logprobs, 1U);
}

// ggml-org/llama.cpp#3550, and the kind of ai-dynamo/dynamo#12916: every integer field against
// every value that is not one of its integers.
TEST(Completion, EveryIntegerFieldRefusesWhatIsNotItsInteger) {
  const std::string fields[] = {"max_tokens", "n", "best_of", "logprobs", "top_k", "seed"};
  const std::string values[] = {"true",
                                "false",
                                "1.9",
                                "-1.5",
                                "1e30",
                                "-1e30",
                                "1e300",
                                "9223372036854775808",
                                "18446744073709551615",
                                "18446744073709551616",
                                "-9223372036854775809",
                                R"("1")",
                                R"("")",
                                "[]",
                                "[1]",
                                "{}"};
  for (const auto& field : fields) {
    for (const auto& value : values) {
      expect_refused("\"" + field + "\":" + value, field);
    }
  }
  for (const auto& field : {"max_tokens", "n", "best_of", "logprobs", "top_k"}) {
    for (const auto& value : {"-2147483648", "9223372036854775807", "4294967297"}) {
      expect_refused("\"" + std::string(field) + "\":" + value, field);
    }
  }
  for (const auto& member : {"k", "window"}) {
    for (const auto& value : values) {
      expect_refused(R"("speculation":{")" + std::string(member) + "\":" + value + "}",
                     "speculation." + std::string(member));
    }
  }
  for (const auto& value : values) {
    expect_refused(R"("notebank":{"bank":"b","top":)" + value + "}", "notebank.top");
  }
}

TEST(Completion, EveryNumberFieldRefusesWhatIsNotInItsRange) {
  const std::string values[] = {"true",       R"("1")",      "[]",
                                "{}",         "1e30",        "-1e30",
                                "1e308",      "-1e308",      "18446744073709551616",
                                "2147483647", "-2147483648", "2.0000001",
                                "-2.0000001"};
  for (const auto& field : {"temperature", "top_p", "min_p", "presence_penalty",
                            "frequency_penalty", "repetition_penalty"}) {
    for (const auto& value : values) {
      expect_refused("\"" + std::string(field) + "\":" + value, field);
    }
  }
  for (const auto& value : values) {
    expect_refused(R"("speculation":{"alpha_threshold":)" + value + "}",
                   "speculation.alpha_threshold");
  }
  expect_refused(R"("temperature":-0.1)", "temperature");
  expect_refused(R"("top_p":1.1)", "top_p");
  expect_refused(R"("min_p":-0.1)", "min_p");
  expect_refused(R"("repetition_penalty":0)", "repetition_penalty");
}

TEST(Completion, EveryBooleanFieldRefusesWhatIsNotABoolean) {
  for (const auto& field : {"stream", "echo", "ignore_eos", "return_token_ids"}) {
    for (const auto& value : {R"("true")", "1", "0", "1.0", "[]", "{}", R"("")"}) {
      expect_refused("\"" + std::string(field) + "\":" + value, field);
    }
  }
  // mozilla-ai/llamafile#160
  EXPECT_EQ(refusal(R"({"prompt":"hi","stream":"true"})").param, "stream");
}

// vllm-project/vllm#1623
TEST(Completion, TinyTemperaturesAndTopPAreFiniteAndTopPZeroIsArgmax) {
  const auto tiny = parse(with(R"("temperature":0.0001,"top_p":0.0001)")).options;
  EXPECT_GT(tiny.temperature, 0.0F);
  EXPECT_GT(tiny.top_p, 0.0F);
  EXPECT_GE(parse(with(R"("temperature":1e-30)")).options.temperature, 0.0F);
  for (const auto& value : {"0", "0.0", "1e-300"}) {
    const auto options = parse(with("\"top_k\":40,\"top_p\":" + std::string(value))).options;
    EXPECT_EQ(options.top_k, 1);
    EXPECT_EQ(options.top_p, 1.0F);
  }
  EXPECT_GT(parse(with(R"("repetition_penalty":1e-300)")).options.repetition_penalty, 0.0F);
}

TEST(Completion, TopKMinusOneIsOff) {
  EXPECT_EQ(parse(with(R"("top_k":-1)")).options.top_k, 0);
  EXPECT_EQ(parse(with(R"("top_k":2147483647)")).options.top_k, 2147483647);
  expect_refused(R"("top_k":-2)", "top_k");
}

// vllm-project/vllm#57018, vllm-project/vllm#4529
TEST(Completion, ASeedIsAnInt64) {
  for (const auto& [text, value] : std::vector<std::pair<std::string, std::int64_t>>{
           {"-9223372036854775808", std::numeric_limits<std::int64_t>::min()},
           {"-1", -1},
           {"0", 0},
           {"9223372036854775807", std::numeric_limits<std::int64_t>::max()}}) {
    EXPECT_EQ(parse(with("\"seed\":" + text)).options.seed, value);
  }
  for (const auto& text : {"-9223372036854775809", "9223372036854775808", "18446744073709551615",
                           "18446744073709551616"}) {
    expect_refused("\"seed\":" + std::string(text), "seed");
  }
}

// sgl-project/sglang#40076, local-inference-lab/vllm#264
TEST(Completion, LogprobsAreZeroToTwenty) {
  for (std::size_t count = 0; count <= 20; ++count) {
    EXPECT_EQ(parse(with("\"logprobs\":" + std::to_string(count))).options.logprobs, count);
  }
  for (const auto& value : {"1000000", "-1", "21", "true", "2.5"}) {
    expect_refused("\"logprobs\":" + std::string(value), "logprobs");
  }
}

// sgl-project/sglang#36856, abetlen/llama-cpp-python#1906, sgl-project/sglang#910
TEST(Completion, NIsOneToEightAndBestOfMustEqualIt) {
  EXPECT_EQ(parse(with(R"("n":3)")).options.n, 3U);
  EXPECT_EQ(parse(with(R"("n":8,"best_of":8)")).options.n, 8U);
  expect_refused(R"("n":5000000)", "n");
  expect_refused(R"("n":0)", "n");
  expect_refused(R"("n":9)", "n");
  expect_refused(R"("n":2,"best_of":3)", "best_of");
  expect_refused(R"("best_of":2)", "best_of");
}

TEST(Completion, StopsAreUpToSixteenShortStrings) {
  EXPECT_EQ(parse(with(R"("stop":"x")")).options.stop, std::vector<std::string>{"x"});
  const json sixteen(limits::kStopStringsMax, "s");
  EXPECT_EQ(parse(with("\"stop\":" + sixteen.dump())).options.stop.size(), 16U);
  expect_refused("\"stop\":" + json(limits::kStopStringsMax + 1, "s").dump(), "stop");
  EXPECT_TRUE(parse(with(R"("stop":[])")).options.stop.empty());
  EXPECT_EQ(parse(with("\"stop\":\"" + std::string(256, 's') + "\"")).options.stop[0].size(), 256U);
  expect_refused("\"stop\":\"" + std::string(257, 's') + "\"", "stop");
  for (const auto& value :
       {R"("")", R"(["a",""])", "1", "true", "{}", "[1]", "[null]", R"([["a"]])"}) {
    expect_refused("\"stop\":" + std::string(value), "stop");
  }
}

TEST(Completion, ALogitBiasMapsDecimalIdsToHundreds) {
  const auto options = parse(with(R"("logit_bias":{"50":-100,"7":1.5,"0":100})")).options;
  ASSERT_EQ(options.logit_bias.size(), 3U);
  EXPECT_EQ(options.logit_bias[1], (std::pair<TokenId, float>{7, 1.5F}));
  for (const auto& value : {R"({"50":101})",
                            R"({"50":-100.5})",
                            R"({"50":"1"})",
                            R"({"50":true})",
                            R"({"50":null})",
                            R"({"a":1})",
                            R"({"":1})",
                            R"({"-1":1})",
                            R"({"+1":1})",
                            R"({" 1":1})",
                            R"({"1 ":1})",
                            R"({"07":1})",
                            R"({"00":1})",
                            R"({"-0":1})",
                            R"({"1.5":1})",
                            R"({"4294967296":1})",
                            "[]",
                            "[1]",
                            "1",
                            "true"}) {
    expect_refused("\"logit_bias\":" + std::string(value), "logit_bias");
  }
  json bias = json::object();
  for (int id = 0; id < 1025; ++id) {
    bias[std::to_string(id)] = 1;
  }
  expect_refused("\"logit_bias\":" + bias.dump(), "logit_bias");
  bias.erase("0");
  EXPECT_EQ(parse(with("\"logit_bias\":" + bias.dump())).options.logit_bias.size(), 1024U);
}

TEST(Completion, StreamOptionsNeedAStream) {
  EXPECT_TRUE(parse(with(R"("stream":true,"stream_options":{"include_usage":true})"))
                  .options.stream_options.include_usage);
  EXPECT_FALSE(
      parse(with(R"("stream":true,"stream_options":{})")).options.stream_options.include_usage);
  expect_refused(R"("stream_options":{"include_usage":true})", "stream_options");
  expect_refused(R"("stream":false,"stream_options":{})", "stream_options");
  expect_refused(R"("stream":true,"stream_options":true)", "stream_options");
  expect_refused(R"("stream":true,"stream_options":{"include_usage":1})",
                 "stream_options.include_usage");
  const auto continuous = [](const std::string& members) {
    return parse(with("\"stream\":true,\"stream_options\":{" + members + "}"))
        .options.stream_options.continuous_usage;
  };
  EXPECT_TRUE(continuous(R"("include_usage":true,"continuous_usage_stats":true)"));
  EXPECT_FALSE(continuous(R"("continuous_usage_stats":true)")) << "as vLLM has it";
  EXPECT_FALSE(continuous(R"("include_obfuscation":true)"));
}

TEST(Completion, MaxCompletionTokensIsTheNewerName) {
  EXPECT_EQ(parse(with(R"("max_completion_tokens":4)")).options.max_tokens, 4U);
  EXPECT_EQ(parse(with(R"("max_completion_tokens":4,"max_tokens":4)")).options.max_tokens, 4U);
  EXPECT_EQ(parse(with(R"("max_completion_tokens":null)")).options.max_tokens, 16U);
  expect_refused(R"("max_completion_tokens":4,"max_tokens":5)", "max_completion_tokens");
  expect_refused(R"("max_completion_tokens":-1)", "max_completion_tokens");
}

TEST(Completion, MinTokensAreAtMostMaxTokens) {
  EXPECT_EQ(parse(with("\"n\":1")).options.min_tokens, 0U);
  EXPECT_EQ(parse(with(R"("min_tokens":8,"max_tokens":8)")).options.min_tokens, 8U);
  EXPECT_EQ(parse(with(R"("min_tokens":16)")).options.min_tokens, 16U);
  expect_refused(R"("min_tokens":17)", "min_tokens");
  expect_refused(R"("min_tokens":9,"max_tokens":8)", "min_tokens");
  expect_refused(R"("min_tokens":-1)", "min_tokens");
}

// ggml-org/llama.cpp#23463, huggingface/text-generation-inference#2280
TEST(Completion, RefusesFormatsOtherThanText) {
  for (const char* format :
       {R"({"type":"json_schema"})", R"({"type":"json_object"})", "{}", R"({"type":1})"}) {
    const ApiError error = refusal(with("\"response_format\":" + std::string(format)));
    EXPECT_EQ(error.status, 400) << format;
    EXPECT_EQ(error.param.rfind("response_format", 0), 0U) << error.param;
  }
  expect_refused(R"("grammar":{"type":"json","value":{"type":7}})", "grammar");
  EXPECT_NO_THROW(static_cast<void>(parse(with(R"("response_format":{"type":"text"})"))));
}

TEST(Completion, ReadsTheSpeculationObject) {
  const auto speculation = parse(with(R"("speculation":{"mode":"on","k":3,"governor":"trip",
      "alpha_threshold":0.5,"window":8})"))
                               .options.speculation;
  EXPECT_EQ(speculation.enabled, true);
  EXPECT_EQ(speculation.k, 3U);
  EXPECT_EQ(speculation.governor, GovernorKind::kTrip);
  EXPECT_EQ(speculation.alpha_threshold, 0.5);
  EXPECT_EQ(speculation.window, 8U);
  EXPECT_EQ(parse(with(R"("speculation":{"mode":"off"})")).options.speculation.enabled, false);
  EXPECT_EQ(parse(with(R"("speculation":{"mode":"on","k":0})")).options.speculation.enabled, false);
  EXPECT_FALSE(parse(with(R"("speculation":{"mode":"auto"})")).options.speculation.enabled);
  expect_refused(R"("speculation":{"k":17})", "speculation.k");
  expect_refused(R"("speculation":{"k":-1})", "speculation.k");
  expect_refused(R"("speculation":{"window":0})", "speculation.window");
  expect_refused(R"("speculation":{"mode":"fast"})", "speculation.mode");
  expect_refused(R"("speculation":{"governor":"none"})", "speculation.governor");
  expect_refused(R"("speculation":true)", "speculation");
  expect_refused(R"("speculation":[])", "speculation");
}

TEST(Completion, ReadsTheNotebankObjectAndKeepsPathsOutOfBankNames) {
  const auto options = parse(with(R"("notebank":{"bank":"my-bank_1","top":3,"ranker":"votes"})"));
  ASSERT_TRUE(options.options.notebank);
  EXPECT_EQ(options.options.notebank->bank, "my-bank_1");
  EXPECT_EQ(options.options.notebank->top, 3U);
  EXPECT_EQ(options.options.notebank->ranker, Ranker::kVotes);
  for (const auto& bank : {"", "..", ".", "a/b", "a\\\\b", "a b", "%2e", "a\\u0000b", "é"}) {
    expect_refused(R"("notebank":{"bank":")" + std::string(bank) + "\"}", "notebank.bank");
  }
  expect_refused(R"("notebank":{})", "notebank.bank");
  expect_refused(R"("notebank":{"bank":")" + std::string(65, 'b') + "\"}", "notebank.bank");
  expect_refused(R"("notebank":{"bank":"b","ranker":"x"})", "notebank.ranker");
}

TEST(Completion, UnknownFieldsAreIgnoredAndCounted) {
  const auto request = parse(with(R"("x":1,"y":{"z":[1]})"));
  EXPECT_EQ(request.options.unknown_fields, 2U);
}

TEST(Completion, UnknownMembersOfItsObjectsAreRefused) {
  const std::pair<std::string, std::string> asks[] = {
      {R"("speculation":{"enabled":false})", "speculation.enabled"},
      {R"("speculation":{"k":2,"K":1})", "speculation.K"},
      {R"("notebank":{"bank":"b","topk":1})", "notebank.topk"},
      {R"("stream":true,"stream_options":{"usage":true})", "stream_options.usage"},
      {R"("response_format":{"type":"text","strict":true})", "response_format.strict"}};
  for (const auto& [member, param] : asks) {
    expect_refused(member, param);
    EXPECT_EQ(refusal(with(member)).code, "unknown_parameter") << member;
  }
  EXPECT_NE(refusal(with(R"("speculation":{"enabled":false})"))
                .message.find("alpha_threshold, governor, k, mode, window"),
            std::string::npos);
  EXPECT_NO_THROW(static_cast<void>(parse(with(R"("speculation":{"enabled":null})"))));
}

TEST(Completion, StringsOfTheWrongKindOrSizeAreRefused) {
  expect_refused(R"("model":7)", "model");
  expect_refused("\"model\":\"" + std::string(257, 'm') + "\"", "model");
  EXPECT_EQ(parse(with(R"("model":"a\"b\\c\nd")")).options.model, "a\"b\\c\nd");
}

}  // namespace
}  // namespace spel::proto
