// What a body may cost, and what a client may hold by sending one.
#include <gtest/gtest.h>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "proto/json_text.h"
#include "server/body_budget.h"
#include "server/growing_body.h"
#include "support.h"

namespace spel::server::testing {
namespace {

constexpr std::size_t kMiB = std::size_t{1} << 20;

TEST(BodyCharge, TakesAsItGrowsAndGivesBackAtItsEnd) {
  BodyBudget budget(100'000);
  {
    BodyCharge charge(budget);
    EXPECT_TRUE(charge.hold(kSmallBodyBytes));
    EXPECT_EQ(budget.left(), 100'000U);
    EXPECT_TRUE(charge.hold(60'000));
    EXPECT_EQ(budget.left(), 40'000U);
    EXPECT_FALSE(charge.hold(100'001));
    EXPECT_EQ(budget.left(), 40'000U);
    BodyCharge other(budget);
    EXPECT_FALSE(other.hold(40'001));
    EXPECT_TRUE(other.hold(40'000));
    const BodyCharge moved = std::move(charge);
    EXPECT_EQ(budget.left(), 0U);
    EXPECT_TRUE(other.hold(20'000));
    EXPECT_EQ(budget.left(), 20'000U);
  }
  EXPECT_EQ(budget.left(), 100'000U);
}

TEST(GrowingBody, TakesMemoryAsBytesComeAndNotAsTheyAreAnnounced) {
  GrowingBody::value_type body;
  body.announced = 32 * kMiB;
  EXPECT_LT(body.bytes_with(4096), 8192U);
  body.text.assign(20 * kMiB, 'a');
  EXPECT_LE(body.bytes_with(4096), 32 * kMiB);
  EXPECT_GE(body.bytes_with(4096), 20 * kMiB + 4096);
}

std::string announce(std::size_t bytes, const std::string& path = "/v1/completions") {
  return "POST " + path +
         " HTTP/1.1\r\nHost: localhost\r\nContent-Length: " + std::to_string(bytes) + "\r\n\r\n";
}

TEST(Body, AnnouncingMuchAndSendingNothingKeepsNobodyOut) {
  const TestServer server(ascii_script("ok"));
  std::vector<std::unique_ptr<Client>> idle;
  for (int i = 0; i < 300; ++i) {  // Together they announce more than twice the budget.
    idle.push_back(std::make_unique<Client>(server.port()));
    idle.back()->send(announce(kMiB) + "{");
  }
  const std::string body =
      R"({"prompt":">","max_tokens":1,"user":")" + std::string(kMiB / 2, 'x') + "\"}";
  EXPECT_EQ(server.ask(post("/v1/completions", body)).status, 200);
}

TEST(Body, SendingMuchIsChargedAndGivenBack) {
  const TestServer server(ascii_script("ok"), [](config::ServerConfig& config) {
    config.body_bytes = 2 * kMiB;
    config.wire_bytes = 8 * kMiB;
  });
  const std::string most(2 * kMiB - 1, ' ');
  std::vector<std::unique_ptr<Client>> senders;
  bool refused = false;
  for (int i = 0; i < 80 && !refused; ++i) {
    senders.push_back(std::make_unique<Client>(server.port(), milliseconds(50)));
    senders.back()->send(announce(2 * kMiB) + most);
    refused = senders.back()->read_reply().status == 503;
  }
  EXPECT_TRUE(refused) << "160 MiB of bodies were held";
  senders.clear();
  const std::string body = R"({"prompt":">","max_tokens":1})" + std::string(kMiB, ' ');
  EXPECT_TRUE(eventually([&] { return server.ask(post("/v1/completions", body)).status == 200; }));
}

TEST(Body, UnknownMembersAreCountedWithoutBeingBuilt) {
  const TestServer server(ascii_script("ok"));
  std::string body = R"({"prompt":">","max_tokens":1,"x":[0)";
  for (int i = 0; i < 100'000; ++i) {
    body += ",{}";
  }
  EXPECT_EQ(server.ask(post("/v1/completions", body + "]}")).status, 200);
  const double unknown = server.metric("spel_unknown_fields_total");
  EXPECT_EQ(unknown, 1.0);
  // The same where it is read.
  std::string known = R"({"max_tokens":1,"prompt":[0)" + body.substr(body.find(",{}"));
  const Reply reply = server.ask(post("/v1/completions", known + "]}"));
  EXPECT_EQ(reply.status, 400);
  EXPECT_EQ(reply.parsed()["error"]["code"], "json_too_large");
}

TEST(Body, ALargeAnswerComesInChunksAndIsWhole) {
  const TestServer server(ascii_script("ok"));
  const std::string content(kMiB - 100, 'a');
  const Reply reply =
      server.ask(post("/tokenize", R"({"with_pieces":true,"content":")" + content + "\"}"));
  ASSERT_EQ(reply.status, 200);
  EXPECT_EQ(reply.header("transfer-encoding"), "chunked");
  EXPECT_FALSE(reply.truncated);
  const json answer = reply.parsed();
  EXPECT_EQ(answer["count"], content.size());
  ASSERT_EQ(answer["tokens"].size(), content.size());
  EXPECT_EQ(answer["tokens"].back(), json::parse(R"({"id":97,"piece":"a"})"));

  std::string ids = "[104";
  for (int i = 0; i < 100'000; ++i) {
    ids += ",105";
  }
  const Reply text = server.ask(post("/detokenize", R"({"tokens":)" + ids + "]}"));
  ASSERT_EQ(text.status, 200);
  EXPECT_EQ(text.parsed()["content"].get<std::string>(), "h" + std::string(100'000, 'i'));
  // A small one has its length.
  EXPECT_EQ(
      server.ask(post("/tokenize", R"({"content":"a"})")).header("content-length"),
      std::to_string(std::string(R"({"tokens":[97],"count":1,"max_model_len":4096})").size()));
}

TEST(Body, ALargeAnswerNobodyReadsHoldsNobodyUp) {
  const TestServer server(ascii_script("ok"));
  std::vector<std::unique_ptr<Client>> readers;
  const std::string request = post(
      "/tokenize", R"({"with_pieces":true,"content":")" + std::string(kMiB - 100, 'a') + "\"}");
  for (int i = 0; i < 4; ++i) {
    readers.push_back(std::make_unique<Client>(server.port()));
    readers.back()->shrink_receive_buffer();
    readers.back()->send(request);
  }
  for (int i = 0; i < 20; ++i) {
    EXPECT_EQ(server.ask(get("/health")).status, 200);
  }
  EXPECT_EQ(server.complete({{"prompt", ">"}, {"max_tokens", 1}}).status, 200);
}

TEST(Body, ChoicesWithLogprobsComeOneAfterTheOther) {
  const TestServer server(ascii_script("ok"));
  const Reply reply = server.complete({{"prompt", ">"},
                                       {"max_tokens", 600},
                                       {"n", 4},
                                       {"logprobs", 5},
                                       {"return_token_ids", true}});
  ASSERT_EQ(reply.status, 200) << reply.body.substr(0, 300);
  const json answer = reply.parsed();
  ASSERT_EQ(answer["choices"].size(), 4U);
  for (std::size_t i = 0; i < 4; ++i) {
    EXPECT_EQ(answer["choices"][i]["index"], i);
    EXPECT_EQ(answer["choices"][i]["token_ids"].size(), 600U);
  }
  EXPECT_EQ(answer["usage"]["completion_tokens"], 2400);
}

// --- A client that has sent more than the server reads ahead -------------------------------------

Script slow_script() {
  Script script = ascii_script("ok");
  script.delay = std::chrono::milliseconds(5);
  return script;
}

TEST(SentAhead, AClientThatLeavesIsNoticed) {
  for (const bool stream : {false, true}) {
    const TestServer server(slow_script());
    Client client(server.port());
    client.send(post("/v1/completions",
                     json{{"prompt", ">"}, {"max_tokens", 4000}, {"stream", stream}}.dump()) +
                std::string(100'000, 'x'));
    ASSERT_TRUE(eventually([&] { return server.stats().running == 1; }));
    client.close();
    // To its end it would take 20 seconds.
    EXPECT_TRUE(server.wait_idle()) << stream;
    EXPECT_LT(server.stats().generation_tokens, 3000U) << stream;
  }
}

TEST(SentAhead, AClientThatStaysGetsItsAnswerAndThenTheEnd) {
  const TestServer server(slow_script());
  Client client(server.port());
  client.send(post("/v1/completions", R"({"prompt":">","max_tokens":50,"temperature":0})") +
              std::string(100'000, 'x'));
  const Reply reply = client.read_reply();
  EXPECT_EQ(reply.status, 200);
  EXPECT_EQ(reply.parsed()["usage"]["completion_tokens"], 50);
  EXPECT_EQ(client.read_all(), "");
}

TEST(SentAhead, AClientThatSendsWithoutEndIsClosed) {
  const TestServer server(slow_script());
  Client client(server.port());
  client.send(post("/v1/completions", R"({"prompt":">","max_tokens":4000})"));
  ASSERT_TRUE(eventually([&] { return server.stats().running == 1; }));
  const std::string more(kMiB, 'x');
  for (int i = 0; i < 8; ++i) {
    client.send(more);
  }
  EXPECT_TRUE(server.wait_idle());
}

}  // namespace
}  // namespace spel::server::testing
