// POST /v1/completions against a model whose output is written down: the whole chain from socket to
// socket. Names in brackets are the public reports whose fault must not come back.
#include <gtest/gtest.h>

#include "support.h"

namespace spel::server::testing {
namespace {

const std::string& finish_of(const json& body) {
  return body.at("choices").at(0).at("finish_reason").get_ref<const std::string&>();
}

const std::string& text_of(const json& body) {
  return body.at("choices").at(0).at("text").get_ref<const std::string&>();
}

TEST(Completion, AnswersWithTextUsageTimingsAndSpeculation) {
  const TestServer server(ascii_script("hello world"));
  const Reply reply = server.complete({{"prompt", "say>"}, {"max_tokens", 5}, {"temperature", 0}});
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

TEST(Completion, StreamSaysTheSameAsTheWholeAnswer) {
  const TestServer server(ascii_script("hello world"));
  const json request = {{"prompt", "say>"}, {"max_tokens", 11}, {"temperature", 0}};
  const Streamed streamed = server.stream(request);
  EXPECT_EQ(streamed.text, text_of(server.complete(request).parsed()));
  EXPECT_EQ(streamed.finish_reason, "length");
  EXPECT_TRUE(streamed.done);
  ASSERT_FALSE(streamed.chunks.empty());
  EXPECT_EQ(streamed.chunks.back().at("usage").at("completion_tokens"), 11);
  EXPECT_TRUE(streamed.chunks.back().contains("speculation"));
}

}  // namespace
}  // namespace spel::server::testing
