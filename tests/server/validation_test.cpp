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
      {"sgl-project/sglang#40076", R"({"prompt":"a","logprobs":6})", 400, "logprobs"},
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
