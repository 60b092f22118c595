// What is wrong with a request is said with its status and its field, and the server lives on.
// Names in brackets are the public reports whose fault must not come back.
#include <gtest/gtest.h>

#include "support.h"

namespace spel::server::testing {
namespace {

struct Case {
  const char* report;
  std::string body;
  int status;
  std::string param;  ///< error.param of a refusal; "*": not looked at.
};

std::string nested(std::size_t depth) {
  return R"({"prompt":"a","x":)" + std::string(depth, '[') + std::string(depth, ']') + "}";
}

std::vector<Case> cases() {
  const std::string ids = R"({"max_tokens":1,"prompt":)";
  return {
      {"mozilla-ai/llamafile#160", R"({"prompt":"hi","stream":"true"})", 400, "stream"},
      {"vllm-project/vllm#7632", R"({"prompt":"","max_tokens":4})", 400, "prompt"},
      {"vllm-project/vllm#7632", R"({"prompt":[""],"max_tokens":4})", 400, "prompt"},
      {"vllm-project/vllm#7632", R"({"prompt":[]})", 400, "prompt"},
      {"huggingface/text-generation-inference#1088", R"({"prompt":"hi","max_tokens":0})", 200, ""},
      {"huggingface/text-generation-inference#1088", R"({"prompt":"hi","max_tokens":-1})", 400,
       "max_tokens"},
      {"LostRuins/koboldcpp#643",
       R"({"prompt":"hi","stop":null,"max_tokens":15821,"n":1,"logit_bias":{},"user":""})", 200,
       ""},
      {"ggml-org/llama.cpp#23463", R"({"prompt":"hi","response_format":{"type":"json_schema"}})",
       400, "response_format"},
      {"vllm-project/vllm#54196", R"({"prompt":"a","stop_token_ids":[999999]})", 400,
       "stop_token_ids"},
      {"vllm-project/vllm#6707", R"({"prompt":"hi"})", 200, ""},
      {"sgl-project/sglang#40076", R"({"prompt":"a","logprobs":1000000})", 400, "logprobs"},
      {"sgl-project/sglang#40076", R"({"prompt":"a","logprobs":-1})", 400, "logprobs"},
      {"sgl-project/sglang#40076", R"({"prompt":"a","logprobs":21})", 400, "logprobs"},
      {"sgl-project/sglang#40076", R"({"prompt":"a","logprobs":true})", 400, "logprobs"},
      {"sgl-project/sglang#40076", R"({"prompt":"a","logprobs":2.5})", 400, "logprobs"},
      {"local-inference-lab/vllm#264", R"({"prompt":"a","echo":true,"logprobs":-1})", 400,
       "logprobs"},
      {"vllm-project/vllm#19862", R"({"prompt":"hi","max_tokens":null})", 200, ""},
      {"huggingface/text-generation-inference#2280",
       R"({"prompt":"hi","grammar":{"type":"json","value":{"type":7}}})", 400, "grammar"},
      {"vllm-project/vllm#35231", R"({"prompt":[[-1]],"max_tokens":1})", 400, "prompt"},
      {"vllm-project/vllm#51795", R"({"prompt":[-1],"max_tokens":1})", 400, "prompt"},
      {"vllm-project/vllm#4529", R"({"prompt":"a","seed":18446744073709551616})", 400, "seed"},
      {"vllm-project/vllm#57018", R"({"prompt":"a","seed":9223372036854775808})", 400, "seed"},
      {"vllm-project/vllm#57018", R"({"prompt":"a","seed":-9223372036854775809})", 400, "seed"},
      {"vllm-project/vllm#1623", R"({"prompt":"a","top_p":0})", 200, ""},
      {"vllm-project/vllm#1623", R"({"prompt":"a","top_p":0.0001})", 200, ""},
      {"raullenchai/Rapid-MLX#740", R"({"prompt":"a","temperature":NaN})", 400, ""},
      {"raullenchai/Rapid-MLX#740", R"({"prompt":"a","temperature":1e400})", 400, "*"},
      {"ggml-org/llama.cpp#3550", R"({"prompt":"a","max_tokens":4097})", 200, ""},
      {"ggml-org/llama.cpp#3550", R"({"prompt":"a","top_k":2147483647})", 200, ""},
      {"ggml-org/llama.cpp#3550", R"({"prompt":"a","top_k":-2147483648})", 400, "top_k"},
      {"ggml-org/llama.cpp#3550", R"({"prompt":"a","n":2147483647})", 400, "n"},
      {"sgl-project/sglang#36856", R"({"prompt":"a","n":5000000})", 400, "n"},
      {"ai-dynamo/dynamo#12916", ids + "[1,2,4294967295]}", 400, "prompt"},
      {"ai-dynamo/dynamo#12916", ids + "[128]}", 400, "prompt"},
      {"ai-dynamo/dynamo#12916", ids + "[2147483648]}", 400, "prompt"},
      {"ai-dynamo/dynamo#12916", ids + "[9223372036854775808]}", 400, "prompt"},
      {"ai-dynamo/dynamo#12916", ids + "[1.5]}", 400, "prompt"},
      {"ai-dynamo/dynamo#12916", ids + "[true]}", 400, "prompt"},
      {"ai-dynamo/dynamo#12916", ids + "[127]}", 200, ""},
      {"ggml-org/llama.cpp#27434", nested(64), 400, "*"},
      {"ggml-org/llama.cpp#27434", nested(3000), 400, "*"},
      {"ggml-org/llama.cpp#27434", nested(100000), 400, "*"},
      {"mozilla-ai/llamafile#116", R"({: "prompt":"hi"})", 400, ""},
      {"ollama/ollama#6188", R"({"prompt":["a"]})", 200, ""},
      {"ollama/ollama#6188", R"({"prompt":[1,2]})", 200, ""},
      {"ollama/ollama#6188", R"({"prompt":[[1,2],[3]]})", 200, ""},
      {"ollama/ollama#6188", R"({"prompt":[1,"a"]})", 400, "prompt"},
      {"unknown model", R"({"prompt":"a","model":"gpt-5"})", 404, "model"},
      {"not ASCII", "{\"prompt\":\"\xC3\xA9\"}", 400, "prompt"},
      {"no memory module", R"({"prompt":"a","notebank":{"bank":"b"}})", 501, "notebank"},
      {"not an object", "[]", 400, ""},
      {"no body", "", 400, ""},
  };
}

TEST(Validation, EveryKnownBadRequestGetsItsStatusAndField) {
  const TestServer server(ascii_script("ok"));
  for (const Case& each : cases()) {
    const Reply reply = server.ask(post("/v1/completions", each.body));
    EXPECT_EQ(reply.status, each.status)
        << each.report << " " << each.body.substr(0, 80) << " -> " << reply.body;
    EXPECT_EQ(reply.header("content-type"), "application/json") << each.report;
    if (each.status != 200 && each.param != "*") {
      EXPECT_EQ(reply.error_param(), each.param) << each.report << " " << reply.body;
    }
    // [ggml-org/llama.cpp#5246]: what comes after is served as ever.
    ASSERT_EQ(server.complete({{"prompt", "hi"}, {"max_tokens", 1}}).status, 200) << each.report;
  }
}

// [vllm-project/vllm#54196] [huggingface/text-generation-inference#2280]: a bad request among good
// ones changes nothing.
TEST(Validation, ABadRequestDoesNotTouchItsNeighbours) {
  Script script = ascii_script("abcdefghijklmnop");
  script.delay = std::chrono::milliseconds(2);
  const TestServer server(script);
  const std::string good = json{{"prompt", ">"}, {"max_tokens", 16}, {"seed", 3}}.dump();
  std::vector<std::unique_ptr<Client>> clients;
  for (int i = 0; i < 3; ++i) {
    clients.push_back(std::make_unique<Client>(server.port()));
    clients.back()->send(post("/v1/completions", good));
  }
  EXPECT_EQ(
      server.ask(post("/v1/completions", R"({"prompt":"a","stop_token_ids":[999999]})")).status,
      400);
  for (const auto& client : clients) {
    EXPECT_EQ(client->read_reply().parsed().at("choices").at(0).at("text"), "abcdefghijklmnop");
  }
}

TEST(Validation, MoreChoicesThanTheServerHoldsAreRefusedForGood) {
  Script script = ascii_script("ok");
  script.sequences = 1;
  script.queue = 2;
  const TestServer server(script);
  const Reply reply = server.complete({{"prompt", "a"}, {"n", 4}});
  EXPECT_EQ(reply.status, 400);
  EXPECT_EQ(reply.error_param(), "n");
}

TEST(Validation, MorePromptsThanTheServerHoldsAreRefusedAndAsManyAreTaken) {
  const TestServer server(ascii_script("ok"));
  const json most(12, ">");  // Four sequences and eight in the queue.
  const json answer = server.complete({{"prompt", most}, {"max_tokens", 2}}).parsed();
  EXPECT_EQ(answer.at("choices").size(), 12U);
  const Reply reply = server.complete({{"prompt", json(13, ">")}, {"max_tokens", 2}});
  EXPECT_EQ(reply.status, 400);
  EXPECT_EQ(reply.error_param(), "prompt");
}

TEST(Validation, AnAnswerOfTooManyLogprobsIsRefused) {
  const TestServer server(ascii_script("ok"));
  json request = {{"prompt", ">"}, {"max_tokens", 4000}, {"logprobs", 20}, {"n", 4}};
  const Reply reply = server.complete(request);
  EXPECT_EQ(reply.status, 400);
  EXPECT_EQ(reply.error_param(), "logprobs");
  request["max_tokens"] = 40;
  EXPECT_EQ(server.complete(request).status, 200);
}

TEST(Validation, AMinimumThatCannotBeKeptIsRefused) {
  const TestServer server(token_script({">", "a"}, {"a"}));
  const Reply reply =
      server.complete({{"prompt", ">"}, {"min_tokens", 1}, {"stop_token_ids", {0, 1}}});
  EXPECT_EQ(reply.status, 400);
  EXPECT_EQ(reply.error_param(), "min_tokens");
}

TEST(Validation, ACharacterWithoutATokenIsNamedWithWhatWouldHelp) {
  const TestServer server(ascii_script("ok"));
  const auto message_for = [&](const std::string& prompt) {
    const Reply reply = server.complete({{"prompt", prompt}});
    EXPECT_EQ(reply.status, 400);
    EXPECT_EQ(reply.error_param(), "prompt");
    return reply.parsed().at("error").at("message").get<std::string>();
  };
  const std::string quote = message_for("don\u2019t");
  EXPECT_NE(quote.find("U+2019 (\"\u2019\") at byte 3"), std::string::npos) << quote;
  EXPECT_NE(quote.find("--normalize-text"), std::string::npos) << quote;
  const std::string other = message_for("\u4F60");
  EXPECT_NE(other.find("U+4F60"), std::string::npos) << other;
  EXPECT_EQ(other.find("--normalize-text"), std::string::npos) << other;
}

TEST(Validation, WithNormalizedTextTheReceiptSaysHowManyCharacters) {
  const TestServer server(ascii_script("ok"),
                          [](config::ServerConfig& c) { c.normalize_text = true; });
  json request = {{"prompt", {"\u201Cdon\u2019t\u201D>", ">"}},
                  {"max_tokens", 2},
                  {"temperature", 0},
                  {"echo", true},
                  {"n", 2}};
  const json body = server.complete(request).parsed();
  EXPECT_EQ(body.at("choices").at(0).at("text"), "\"don't\">ok");
  EXPECT_EQ(body.at("usage").at("prompt_tokens_details").at("normalized_characters"), 3);
  EXPECT_FALSE(server.complete({{"prompt", "plain"}})
                   .parsed()
                   .at("usage")
                   .at("prompt_tokens_details")
                   .contains("normalized_characters"));
  const json chat = {{"messages", {{{"role", "user"}, {"content", "caf\u00E9"}}}},
                     {"max_tokens", 1}};
  EXPECT_EQ(server.ask(post("/v1/chat/completions", chat.dump()))
                .parsed()
                .at("usage")
                .at("prompt_tokens_details")
                .at("normalized_characters"),
            1);
  EXPECT_EQ(server.ask(post("/tokenize", "{\"content\":\"\xC3\xA9\"}")).parsed().at("tokens"),
            json({'e'}));
  EXPECT_EQ(server.complete({{"prompt", "\u4F60"}}).status, 400);
}

TEST(Validation, TokenizeAndDetokenizeAreInverse) {
  const TestServer server(ascii_script("ok"));
  const json tokens = server.ask(post("/tokenize", R"({"content":"hey"})")).parsed();
  EXPECT_EQ(tokens.at("tokens"), json({104, 101, 121}));
  EXPECT_EQ(tokens.at("count"), 3);
  const json text = server.ask(post("/detokenize", R"({"tokens":[104,101,121]})")).parsed();
  EXPECT_EQ(text.at("content"), "hey");
  EXPECT_EQ(server.ask(post("/detokenize", R"({"tokens":[128]})")).status, 400);
  EXPECT_EQ(server.ask(post("/tokenize", "{\"content\":\"\xC3\xA9\"}")).status, 400);
}

// What lm-eval asks a server for before it sends a prompt.
TEST(Validation, TheTokenizerIsDescribedAsVllmDescribesIt) {
  const TestServer server(token_script({">", "a", "</s>"}, {"a"}, "</s>"));
  const json info = server.ask(get("/tokenizer_info")).parsed();
  EXPECT_EQ(info.at("eos_token"), "</s>");
  EXPECT_TRUE(info.at("bos_token").is_null());
  EXPECT_EQ(info.at("model_max_length"), 4096);
  EXPECT_NE(info.at("chat_template").get<std::string>().find("assistant:"), std::string::npos);
  const json tokens =
      server.ask(post("/tokenize", R"({"prompt":"a","add_special_tokens":false})")).parsed();
  EXPECT_EQ(tokens.at("tokens"), json::array({1}));
}

// [ollama/ollama#13223]; and until the memory module is there, [ggml-org/llama.cpp#14434] has
// nothing to restore.
TEST(Validation, NoAnswerShowsAPath) {
  const TestServer server(ascii_script("ok"));
  for (const std::string path :
       {"/v1/models/..%2f..%2fetc%2fpasswd", "/v1/models/tmp", "/v1/notebanks/%2e%2e",
        "/v1/notebanks/x/notes/../../etc", "/etc/passwd", "/../../etc/passwd"}) {
    const Reply reply = server.ask(get(path));
    EXPECT_GE(reply.status, 400) << path;
    EXPECT_NO_THROW((void)reply.parsed().at("error").at("message")) << path;
    EXPECT_EQ(reply.body.find("root:"), std::string::npos) << path;
    EXPECT_EQ(reply.body.find("/home"), std::string::npos) << path;
  }
}

}  // namespace
}  // namespace spel::server::testing
