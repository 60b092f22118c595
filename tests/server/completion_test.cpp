// POST /v1/completions against a model whose output is written down: the whole chain from socket to
// socket. Names in brackets are the public reports whose fault must not come back.
#include <cmath>
#include <gtest/gtest.h>
#include <map>

#include "support.h"

namespace spel::server::testing {
namespace {

std::string finish_of(const json& body) { return body.at("choices").at(0).at("finish_reason"); }
std::string text_of(const json& body) { return body.at("choices").at(0).at("text"); }

/// Asks whole and streamed, expects both to agree, returns the whole body.
json ask_both_ways(const TestServer& server, const json& request) {
  const Reply reply = server.complete(request);
  EXPECT_EQ(reply.status, 200) << reply.body;
  const json body = reply.parsed();
  const Streamed streamed = server.stream(request);
  EXPECT_TRUE(streamed.done);
  EXPECT_EQ(streamed.text, text_of(body));
  EXPECT_EQ(streamed.finish_reason, finish_of(body));
  return body;
}

json ask_greedy(const std::string& prompt, int max_tokens) {
  return {{"prompt", prompt}, {"max_tokens", max_tokens}, {"temperature", 0}};
}

TEST(Completion, AnswersWithTextUsageTimingsAndSpeculation) {
  const TestServer server(ascii_script("hello world"));
  const Reply reply = server.complete(ask_greedy("say>", 5));
  ASSERT_EQ(reply.status, 200) << reply.body;
  EXPECT_EQ(reply.header("content-type"), "application/json");
  const json body = reply.parsed();
  EXPECT_EQ(text_of(body), "hello");
  EXPECT_EQ(finish_of(body), "length");
  EXPECT_EQ(body.at("object"), "text_completion");
  EXPECT_EQ(body.at("model"), "scripted");
  EXPECT_EQ(body.at("usage").at("prompt_tokens"), 4);
  EXPECT_EQ(body.at("usage").at("completion_tokens"), 5);
  EXPECT_GT(body.at("speculation").at("accepted").get<int>(), 0);
  EXPECT_TRUE(body.contains("timings"));
}

TEST(Completion, StreamCarriesTheReceiptOnItsLastChunk) {
  const TestServer server(ascii_script("hello world"));
  const Reply reply = server.complete({{"prompt", ">"}, {"max_tokens", 11}, {"stream", true}});
  EXPECT_EQ(reply.header("content-type"), "text/event-stream; charset=utf-8");
  EXPECT_EQ(reply.header("cache-control"), "no-cache");
  EXPECT_TRUE(reply.body.ends_with("data: [DONE]\n\n"));
  const Streamed streamed = parse_stream(reply.body);
  EXPECT_EQ(streamed.text, "hello world");
  ASSERT_FALSE(streamed.chunks.empty());
  for (std::size_t i = 0; i + 1 < streamed.chunks.size(); ++i) {
    EXPECT_FALSE(streamed.chunks[i].contains("usage"));
  }
  const json& last = streamed.chunks.back();
  EXPECT_EQ(last.at("usage").at("completion_tokens"), 11);
  EXPECT_TRUE(last.contains("timings"));
  EXPECT_TRUE(last.contains("speculation"));
}

TEST(Completion, IncludeUsageAddsAChunkWithoutChoices) {
  const TestServer server(ascii_script("hello"));
  const Streamed streamed = server.stream(
      {{"prompt", ">"}, {"max_tokens", 5}, {"stream_options", {{"include_usage", true}}}});
  ASSERT_GE(streamed.chunks.size(), 2U);
  EXPECT_TRUE(streamed.chunks.front().at("usage").is_null());
  EXPECT_TRUE(streamed.chunks.back().at("choices").empty());
  EXPECT_EQ(streamed.chunks.back().at("usage").at("completion_tokens"), 5);
  EXPECT_TRUE(streamed.done);
}

// [huggingface/text-generation-inference#1724] [huggingface/text-generation-inference#1999]
// [ggml-org/llama.cpp#11538] [huggingface/text-generation-inference#1039] [ggml-org/llama.cpp#9867]
// [vllm-project/vllm#13087]
TEST(Completion, StopStringsCutTheTextBeforeThem) {
  struct Case {
    std::vector<std::string> tokens;
    json stop;
    std::string text;
  };
  const std::vector<Case> cases = {
      {{"1", " ", "2", " ", "3", " ", "4"}, "3", "1 2 "},
      {{"4", "5", "6", "7", "8"}, json::array({"7"}), "456"},
      {{"M", "N", " ", "O", " ", "P", " ", "Q", " ", "R"}, "O P Q", "MN "},
      {{"Par", "is", "x"}, "Pari", ""},
      {{"x", "Par", "is", "x"}, "Pari", "x"},
      {{"?\n", "x"}, "\n", "?"},
      {{"a", "b", "c", "d", "e", "f", "g", "h", "END", "i"}, json::array({"END"}), "abcdefgh"},
      // The earliest match wins, not the first of the list.
      {{"a", "b", "c", "d"}, json::array({"d", "b"}), "a"},
  };
  for (const Case& each : cases) {
    std::vector<std::string> vocabulary = {">", "."};
    for (const std::string& token : each.tokens) {
      if (std::find(vocabulary.begin(), vocabulary.end(), token) == vocabulary.end()) {
        vocabulary.push_back(token);
      }
    }
    const TestServer server(token_script(vocabulary, each.tokens));
    json request = ask_greedy(">", 64);
    request["stop"] = each.stop;
    const json body = ask_both_ways(server, request);
    EXPECT_EQ(text_of(body), each.text) << each.stop;
    EXPECT_EQ(finish_of(body), "stop") << each.stop;
    for (const json& chunk : server.stream(request).chunks) {
      const json& choice = chunk.at("choices").at(0);
      EXPECT_TRUE(!choice.at("text").get<std::string>().empty() ||
                  !choice.at("finish_reason").is_null())
          << "an empty chunk: " << chunk;
    }
  }
}

// [huggingface/text-generation-inference#2344] [ollama/ollama#4524] [LostRuins/koboldcpp#1276]
// [vllm-project/vllm#56101]
TEST(Completion, EosEndsTheTextAndWhatWasDraftedAfterItIsDropped) {
  const TestServer server(
      token_script({">", "a", "b", "c", "d", "</s>"}, {"a", "b", "</s>", "c", "d"}, "</s>"));
  for (const bool with_stop : {false, true}) {
    json request = ask_greedy(">", 32);
    request["speculation"] = {{"mode", "on"}, {"k", 5}, {"governor", "off"}};
    if (with_stop) {
      request["stop"] = {"zzz"};
    }
    const json body = ask_both_ways(server, request);
    EXPECT_EQ(text_of(body), "ab");
    EXPECT_EQ(finish_of(body), "stop");
    // The token that ends the text is counted as generated.
    EXPECT_EQ(body.at("usage").at("completion_tokens"), 3);
    const json& speculation = body.at("speculation");
    EXPECT_LE(speculation.at("accepted").get<int>(), 3);
    EXPECT_EQ(speculation.at("accepted"),
              body.at("usage").at("completion_tokens_details").at("accepted_prediction_tokens"));
  }
}

// [mudler/LocalAI#788] [mudler/LocalAI#3533] [ggml-org/llama.cpp#4047] [ollama/ollama#4357]
TEST(Completion, LengthIsExactAndSaysSo) {
  const TestServer server(ascii_script("abcdefgh"));
  for (const int length : {0, 1, 2, 3, 20}) {
    const json body = ask_both_ways(server, ask_greedy(">", length));
    EXPECT_EQ(body.at("usage").at("completion_tokens"), length);
    EXPECT_EQ(finish_of(body), "length");
    EXPECT_EQ(text_of(body).size(), static_cast<std::size_t>(length));
  }
  const Streamed streamed = server.stream(ask_greedy(">", 5));
  for (std::size_t i = 0; i < streamed.chunks.size(); ++i) {
    const json& reason = streamed.chunks[i].at("choices").at(0).at("finish_reason");
    EXPECT_EQ(reason.is_null(), i + 1 < streamed.chunks.size());
  }
}

// [ggml-org/llama.cpp#4036] [ggml-org/llama.cpp#9195]
TEST(Completion, CharactersSplitOverTokensComeWhole) {
  const std::string tick = "\xE9\x9C\x93";
  const std::string emoji = "\xF0\x9F\x99\x82";
  const std::vector<std::vector<std::string>> splits = {
      {tick.substr(0, 1), tick.substr(1, 1), tick.substr(2)},
      {emoji.substr(0, 1), emoji.substr(1)},
      {emoji.substr(0, 2), emoji.substr(2)},
      {emoji.substr(0, 3), emoji.substr(3)},
  };
  for (const auto& split : splits) {
    std::vector<std::string> vocabulary = {">", "."};
    vocabulary.insert(vocabulary.end(), split.begin(), split.end());
    std::vector<std::string> output = split;
    output.emplace_back(".");
    const TestServer server(token_script(vocabulary, output));
    std::string whole;
    for (const std::string& part : split) {
      whole += part;
    }
    const json body = ask_both_ways(server, ask_greedy(">", static_cast<int>(split.size()) + 1));
    EXPECT_EQ(text_of(body), whole + ".");
    // Cut in the middle of the character: one replacement for what is left.
    EXPECT_EQ(text_of(ask_both_ways(server, ask_greedy(">", 1))), "\xEF\xBF\xBD");
    // A prompt of ids that ends inside a character.
    json ids = ask_greedy("", 1);
    ids["prompt"] = {0, 2};
    EXPECT_EQ(server.complete(ids).status, 200);
  }
}

// [ggml-org/llama.cpp#27972] [ggml-org/llama.cpp#27196] [vllm-project/vllm#6967]
// [vllm-project/vllm#47616]
TEST(Completion, LogprobsAreThereWithDraftsAndEndWithTheText) {
  const TestServer server(ascii_script("abcdefghij"));
  json request = ask_greedy(">", 10);
  request["logprobs"] = 3;
  request["speculation"] = {{"mode", "on"}};
  const json drafted = ask_both_ways(server, request);
  request["speculation"] = {{"mode", "off"}};
  const json plain = ask_both_ways(server, request);
  const json& logprobs = drafted.at("choices").at(0).at("logprobs");
  EXPECT_EQ(logprobs.at("tokens").size(), 10U);
  EXPECT_EQ(logprobs.at("text_offset").at(9), 9);
  EXPECT_EQ(logprobs.at("top_logprobs").at(0).size(), 3U);
  EXPECT_EQ(logprobs, plain.at("choices").at(0).at("logprobs"));
  EXPECT_EQ(plain.at("speculation").at("draft_enabled"), false);

  request["stop"] = "ef";
  const json cut = ask_both_ways(server, request);
  EXPECT_EQ(text_of(cut), "abcd");
  for (const char* member : {"tokens", "token_logprobs", "top_logprobs", "text_offset"}) {
    EXPECT_EQ(cut.at("choices").at(0).at("logprobs").at(member).size(), 4U) << member;
  }
}

TEST(Completion, StreamedLogprobsJoinToTheWholeOnes) {
  const TestServer server(ascii_script("abcdefghij"));
  json request = ask_greedy("p>", 10);
  request["logprobs"] = 1;
  request["echo"] = true;
  request["stop"] = "ghz";
  const json whole = server.complete(request).parsed().at("choices").at(0).at("logprobs");
  json joined = json::array();
  json offsets = json::array();
  for (const json& chunk : server.stream(request).chunks) {
    const json& part = chunk.at("choices").at(0).at("logprobs");
    if (part.is_null()) {
      EXPECT_FALSE(chunk.at("choices").at(0).at("finish_reason").is_null());
      continue;
    }
    joined.insert(joined.end(), part.at("tokens").begin(), part.at("tokens").end());
    offsets.insert(offsets.end(), part.at("text_offset").begin(), part.at("text_offset").end());
  }
  EXPECT_EQ(joined, whole.at("tokens"));
  EXPECT_EQ(offsets, whole.at("text_offset"));
  EXPECT_EQ(joined.size(), 12U);
}

// Every way a text can end, streamed by either endpoint: one shape, OpenAI's.
TEST(Completion, TheEndOfAStreamedChoiceIsAChunkOfItsOwn) {
  const TestServer server(ascii_script("abcdef"));
  std::vector<json> requests;
  for (const json& more :
       {json{{"max_tokens", 4}}, json{{"max_tokens", 0}}, json{{"max_tokens", 0}, {"echo", true}},
        json{{"max_tokens", 9}, {"stop", "d"}}, json{{"max_tokens", 9}, {"stop", "a"}},
        json{{"max_tokens", 9}, {"stop_token_ids", {'c'}}}, json{{"max_tokens", 5}, {"n", 3}},
        json{{"max_tokens", 5}, {"logprobs", 2}, {"echo", true}, {"n", 2}},
        json{{"max_tokens", 5}, {"return_token_ids", true}},
        json{{"max_tokens", 5}, {"stream_options", {{"include_usage", true}}}}}) {
    json request = {{"prompt", ">"}, {"temperature", 0}};
    request.update(more);
    requests.push_back(request);
    if (!more.contains("echo") && !more.contains("logprobs")) {
      request.erase("prompt");
      request["messages"] = {{{"role", "user"}, {"content", ">"}}};
      requests.push_back(request);
    }
  }
  for (json& request : requests) {
    request["stream"] = true;
    const char* path = request.contains("messages") ? "/v1/chat/completions" : "/v1/completions";
    const Streamed streamed = parse_stream(server.ask(post(path, request.dump())).body);
    EXPECT_TRUE(streamed.done) << request;
    std::map<std::size_t, int> ends;
    for (const json& chunk : streamed.chunks) {
      if (chunk.at("choices").empty()) {
        continue;
      }
      const json& choice = chunk.at("choices").at(0);
      const std::size_t index = choice.at("index");
      EXPECT_EQ(ends[index], 0) << "after its end: " << chunk;
      if (choice.at("finish_reason").is_null()) {
        continue;
      }
      ++ends[index];
      EXPECT_EQ(choice.value("text", ""), "") << chunk;
      EXPECT_EQ(choice.value("delta", json::object()), json::object()) << chunk;
      EXPECT_TRUE(choice.at("logprobs").is_null()) << chunk;
      EXPECT_FALSE(choice.contains("token_ids")) << chunk;
    }
    EXPECT_EQ(ends.size(), request.value("n", 1U)) << request;
    for (const auto& [index, count] : ends) {
      EXPECT_EQ(count, 1) << request << " choice " << index;
    }
  }
}

TEST(Completion, AnEchoedPromptComesWithItsTokensForEveryChoice) {
  const TestServer server(ascii_script("abcdef"));
  const json request = {
      {"prompt", "the prompt>"}, {"max_tokens", 3}, {"temperature", 0}, {"echo", true},
      {"logprobs", 1},           {"n", 3},          {"stream", true}};
  std::map<std::size_t, std::string> texts;
  std::map<std::size_t, std::string> joined;
  for (const json& chunk : parse_stream(server.complete(request).body).chunks) {
    const json& choice = chunk.at("choices").at(0);
    const std::size_t index = choice.at("index");
    texts[index] += choice.at("text").get<std::string>();
    if (!choice.at("logprobs").is_null()) {
      for (const json& token : choice.at("logprobs").at("tokens")) {
        joined[index] += token.get<std::string>();
      }
    }
    EXPECT_EQ(texts[index], joined[index]) << "text without its tokens: " << chunk;
  }
  for (std::size_t index = 0; index < 3; ++index) {
    EXPECT_EQ(texts[index], "the prompt>abc");
  }
}

TEST(Completion, TheStopReasonIsTheStringOrTheTokenThatEndedTheText) {
  const std::vector<std::string> vocabulary = {">", "a", "b", "c", "</s>"};
  const TestServer server(token_script(vocabulary, {"a", "b", "c", "</s>"}, "</s>"));
  const auto reason_for = [&](const json& more) {
    json request = ask_greedy(">", 8);
    request.update(more);
    const json choice = server.complete(request).parsed().at("choices").at(0);
    EXPECT_EQ(server.stream(request).chunks.back().at("choices").at(0).at("stop_reason"),
              choice.at("stop_reason"));
    return choice.at("stop_reason");
  };
  EXPECT_EQ(reason_for({{"stop", "b"}}), "b");
  EXPECT_EQ(reason_for({{"stop_token_ids", {3}}}), 3);
  EXPECT_TRUE(reason_for(json::object()).is_null()) << "the model's own end";
  EXPECT_TRUE(reason_for({{"stop_token_ids", {4}}}).is_null()) << "likewise";
  EXPECT_EQ(reason_for({{"stop_token_ids", {4}}, {"ignore_eos", true}}), 4);
  EXPECT_TRUE(reason_for({{"max_tokens", 2}}).is_null());
}

// The same ids whatever the speculation; stop strings and stop tokens count after the minimum.
TEST(Completion, NothingEndsTheTextBeforeMinTokens) {
  const TestServer server(ascii_script("abcabcabc"));
  for (const char* mode : {"on", "off"}) {
    json request = ask_greedy(">", 9);
    request["speculation"] = {{"mode", mode}};
    request["stop"] = "b";
    request["min_tokens"] = 3;
    EXPECT_EQ(text_of(ask_both_ways(server, request)), "abca") << mode;
    request["stop"] = "bc";
    request["min_tokens"] = 2;
    // Begun before the minimum, completed after it.
    EXPECT_EQ(text_of(ask_both_ways(server, request)), "a") << mode;
    request.erase("stop");
    request["min_tokens"] = 5;
    request["stop_token_ids"] = {'b'};
    const json body = ask_both_ways(server, request);
    EXPECT_GE(body.at("usage").at("completion_tokens"), 5) << mode;
    EXPECT_EQ(text_of(body).substr(0, 5).find('b'), std::string::npos) << text_of(body);
    request["min_tokens"] = 9;
    EXPECT_EQ(ask_both_ways(server, request).at("usage").at("completion_tokens"), 9) << mode;
  }
}

TEST(Completion, ContinuousUsageIsOnEveryChunk) {
  const TestServer server(ascii_script("abcdef"));
  const Streamed streamed = server.stream(
      {{"prompt", {">", "x>"}},
       {"max_tokens", 6},
       {"stream_options", {{"include_usage", true}, {"continuous_usage_stats", true}}}});
  std::size_t last = 0;
  for (const json& chunk : streamed.chunks) {
    const json& usage = chunk.at("usage");
    EXPECT_EQ(usage.at("prompt_tokens"), 3);
    const std::size_t so_far = usage.at("completion_tokens");
    EXPECT_GE(so_far, last);
    EXPECT_EQ(usage.at("total_tokens"), 3 + so_far);
    last = so_far;
  }
  EXPECT_EQ(last, 12U);
}

// [vllm-project/vllm#6521] [huggingface/text-generation-inference#1088] [vllm-project/vllm#10432]
TEST(Completion, EchoAndNoTokensGiveThePromptBack) {
  const TestServer server(ascii_script("abc"));
  json request = {
      {"prompt", "Your answer: Yes"}, {"max_tokens", 0}, {"echo", true}, {"logprobs", 1}};
  const json body = ask_both_ways(server, request);
  EXPECT_EQ(text_of(body), "Your answer: Yes");
  EXPECT_EQ(body.at("usage").at("completion_tokens"), 0);
  EXPECT_EQ(body.at("speculation").at("proposed"), 0);
  const json& logprobs = body.at("choices").at(0).at("logprobs");
  EXPECT_EQ(logprobs.at("tokens").size(), 16U);
  EXPECT_TRUE(logprobs.at("token_logprobs").at(0).is_null());
  EXPECT_EQ(logprobs.at("text_offset").at(15), 15);
}

// [abetlen/llama-cpp-python#1906] [sgl-project/sglang#910]
TEST(Completion, ChoicesAreCountedAndSeeded) {
  const TestServer server(ascii_script("abc"));
  const json request = {
      {"prompt", {"x>", "y>"}}, {"n", 3}, {"temperature", 1}, {"seed", 7}, {"max_tokens", 2}};
  const json body = server.complete(request).parsed();
  ASSERT_EQ(body.at("choices").size(), 6U);
  for (std::size_t i = 0; i < 6; ++i) {
    EXPECT_EQ(body.at("choices").at(i).at("index"), i);
    EXPECT_EQ(body.at("choices").at(i).at("text"), "ab");
  }
  EXPECT_EQ(body.at("usage").at("prompt_tokens"), 4);
  EXPECT_EQ(body.at("usage").at("completion_tokens"), 12);
  const Streamed streamed = server.stream(request);
  std::size_t ends = 0;
  for (const json& chunk : streamed.chunks) {
    ends += chunk.at("choices").at(0).at("finish_reason").is_null() ? 0U : 1U;
  }
  EXPECT_EQ(ends, 6U);
  EXPECT_TRUE(streamed.done);
}

// [vllm-project/vllm#57018] [EricLBuehler/mistral.rs#1376] [vllm-project/vllm#1623]
TEST(Completion, TheSameSeedGivesTheSameText) {
  const TestServer server(ascii_script("abc"));
  const auto ask = [&](const json& seed, double temperature) {
    return server.complete(
        {{"prompt", ">"}, {"max_tokens", 8}, {"seed", seed}, {"temperature", temperature}});
  };
  for (const json& seed : {json(-1), json(0), json(INT64_MAX), json(INT64_MIN)}) {
    const Reply first = ask(seed, 1.5);
    ASSERT_EQ(first.status, 200) << first.body;
    EXPECT_EQ(text_of(first.parsed()), text_of(ask(seed, 1.5).parsed()));
  }
  for (const double temperature : {1e-4, 1e-30}) {
    EXPECT_EQ(text_of(ask(1, temperature).parsed()), text_of(ask(1, 0).parsed()));
  }
}

// [ollama/ollama#4967] [ikawrakow/ik_llama.cpp#2420] [NVIDIA/TensorRT-LLM#16826]
TEST(Completion, AnOverlongPromptIsRefusedWithBothCounts) {
  Script script = ascii_script("abc");
  script.max_seq = 64;
  const TestServer server(script);
  for (const std::size_t tokens : {64U, 65U, 128U}) {
    const Reply reply = server.complete(ask_greedy(std::string(tokens, 'x'), 4));
    EXPECT_EQ(reply.status, 400);
    const json error = reply.parsed().at("error");
    EXPECT_EQ(error.at("type"), "exceed_context_size_error");
    EXPECT_EQ(error.at("n_prompt_tokens"), tokens);
    EXPECT_EQ(error.at("n_ctx"), 64);
    EXPECT_EQ(reply.error_param(), "prompt");
  }
  const json last = ask_both_ways(server, {{"prompt", std::string(63, 'x')}, {"temperature", 0}});
  EXPECT_EQ(last.at("usage").at("completion_tokens"), 1);
  EXPECT_EQ(finish_of(last), "length");
  EXPECT_EQ(server.stats().requests_submitted, 2U);
}

// [ollama/ollama#17846]
TEST(Completion, AnEngineThatFailsIsNotMistakenForSuccess) {
  Script script = ascii_script("abcdef");
  script.draft = false;
  const engine::NextToken next = script.next;
  script.next = [next](std::span<const TokenId> history) {
    const TokenId token = next(history);
    return token == 'd' ? throw std::runtime_error("injected") : token;
  };
  const TestServer server(script);
  const Reply whole = server.complete(ask_greedy(">", 6));
  EXPECT_EQ(whole.status, 500);
  EXPECT_EQ(whole.parsed().at("error").at("type"), "server_error");

  Client client(server.port());
  json request = ask_greedy(">", 6);
  request["stream"] = true;
  client.send(post("/v1/completions", request.dump()));
  const Reply reply = client.read_reply();
  EXPECT_EQ(reply.status, 200);
  EXPECT_TRUE(reply.truncated) << "the chunked body must not end as if it were complete";
  EXPECT_NE(reply.body.find("\"error\""), std::string::npos);
  EXPECT_EQ(reply.body.find("[DONE]"), std::string::npos);
  EXPECT_TRUE(client.closed());
  EXPECT_TRUE(server.wait_idle());
  EXPECT_EQ(server.metric("spel_requests_finished_total{result=\"error\"}"), 2);
  EXPECT_EQ(server.complete(ask_greedy(">", 2)).status, 200);
}

// [lmstudio-ai/mlx-engine#280]
TEST(Completion, SaysWhyThereWasNoDrafting) {
  Script script = ascii_script("abc");
  script.draft = false;
  const TestServer server(script);
  const json speculation = server.complete(ask_greedy(">", 3)).parsed().at("speculation");
  EXPECT_EQ(speculation.at("draft_enabled"), false);
  EXPECT_EQ(speculation.at("draft_reason"), "no draft model");
}

TEST(Completion, TokenIdsComeWithTheirPlacesInTheDraft) {
  const TestServer server(ascii_script("abcdef"));
  json request = ask_greedy(">", 6);
  request["return_token_ids"] = true;
  const json choice = ask_both_ways(server, request).at("choices").at(0);
  EXPECT_EQ(choice.at("token_ids"), json({'a', 'b', 'c', 'd', 'e', 'f'}));
  EXPECT_EQ(choice.at("spel").at("draft_positions").size(), 6U);
  EXPECT_EQ(choice.at("spel").at("draft_positions").at(0), -1);
}

TEST(Chat, AnswersAndStreamsWithRolesAndTheTemplatesStop) {
  // The plain template ends with "assistant:"; the model then says this and speaks for the user.
  Script script = ascii_script("");
  const std::string output = " hi there\nuser: more";
  script.next = [output](std::span<const TokenId> history) {
    const std::string text(history.begin(), history.end());
    const std::size_t since = text.size() - (text.rfind("assistant:") + 10);
    return since < output.size() ? TokenId{output[since]} : TokenId{'.'};
  };
  const TestServer server(script);
  json request = {{"messages", {{{"role", "user"}, {"content", "hello"}}}},
                  {"max_tokens", 40},
                  {"temperature", 0}};
  const Reply reply = server.ask(post("/v1/chat/completions", request.dump()));
  ASSERT_EQ(reply.status, 200) << reply.body;
  const json choice = reply.parsed().at("choices").at(0);
  EXPECT_EQ(choice.at("message").at("role"), "assistant");
  EXPECT_EQ(choice.at("message").at("content"), " hi there");
  EXPECT_EQ(choice.at("finish_reason"), "stop");
  EXPECT_TRUE(choice.at("stop_reason").is_null());

  request["stream"] = true;
  const Streamed streamed =
      parse_stream(server.ask(post("/v1/chat/completions", request.dump())).body);
  EXPECT_EQ(streamed.text, " hi there");
  EXPECT_EQ(streamed.chunks.front().at("choices").at(0).at("delta").at("role"), "assistant");
  EXPECT_TRUE(streamed.done);
}

TEST(Chat, AnOpenLastMessageIsContinued) {
  // Says what it has read last, after '>'.
  const TestServer server(ascii_script("ing"));
  json request = {{"messages",
                   {{{"role", "user"}, {"content", "hello"}},
                    {{"role", "assistant"}, {"content", "I am writ>"}}}},
                  {"continue_final_message", true},
                  {"max_tokens", 3},
                  {"temperature", 0}};
  const json body = server.ask(post("/v1/chat/completions", request.dump())).parsed();
  EXPECT_EQ(body.at("choices").at(0).at("message").at("content"), "ing");
  EXPECT_EQ(body.at("usage").at("prompt_tokens"),
            std::string("user: hello\nassistant: I am writ>").size());
  request.erase("continue_final_message");
  request["add_generation_prompt"] = false;
  EXPECT_EQ(server.ask(post("/v1/chat/completions", request.dump()))
                .parsed()
                .at("usage")
                .at("prompt_tokens"),
            std::string("user: hello\nassistant: I am writ>\n").size());
}

TEST(Chat, WithoutAMaximumItEndsAtTheServersBound) {
  const TestServer server(ascii_script(""));
  const json request = {{"messages", {{{"role", "user"}, {"content", "hi"}}}}, {"temperature", 0}};
  const json body = server.ask(post("/v1/chat/completions", request.dump())).parsed();
  EXPECT_EQ(body.at("choices").at(0).at("finish_reason"), "length");
  EXPECT_EQ(body.at("usage").at("completion_tokens"), 256);
}

TEST(Chat, TheBoundIsASettingThatARequestOverrulesAndTheContextCuts) {
  Script script = ascii_script("");
  script.max_seq = 64;
  const TestServer server(script,
                          [](config::ServerConfig& config) { config.chat_max_tokens = 10; });
  json request = {{"messages", {{{"role", "user"}, {"content", "hi"}}}}, {"temperature", 0}};
  const auto usage = [&] {
    return server.ask(post("/v1/chat/completions", request.dump())).parsed().at("usage");
  };
  EXPECT_EQ(usage().at("completion_tokens"), 10);
  request["max_completion_tokens"] = 12;
  EXPECT_EQ(usage().at("completion_tokens"), 12);
  request["max_completion_tokens"] = 5000;
  EXPECT_EQ(usage().at("total_tokens"), 64);
}

}  // namespace
}  // namespace spel::server::testing
