// Many clients, clients that leave, and servers that end. Names in brackets are the public reports
// whose fault must not come back.
#include <algorithm>
#include <cmath>
#include <gtest/gtest.h>
#include <thread>

#include "config/base/error.h"
#include "server/app.h"
#include "support.h"

namespace spel::server::testing {
namespace {

using Seconds = std::chrono::duration<double>;

/// A model that needs a millisecond or more for each token and does not end by itself.
Script slow_script(milliseconds per_pass = milliseconds(2)) {
  Script script = ascii_script("");
  script.delay = per_pass;
  script.draft = false;
  return script;
}

std::string long_request(bool stream, int max_tokens = 3000) {
  return post(
      "/v1/completions",
      json{{"prompt", ">"}, {"max_tokens", max_tokens}, {"temperature", 0}, {"stream", stream}}
          .dump());
}

double cancelled(const TestServer& server) {
  return server.metric("spel_requests_finished_total{result=\"cancelled\"}");
}

// [ggml-org/llama.cpp#24496] [EricLBuehler/mistral.rs#213] [vllm-project/vllm#31503]
TEST(Disconnect, FreesTheSequenceStreamedOrNot) {
  const TestServer server(slow_script());
  int expected = 0;
  for (const bool stream : {true, false}) {
    for (const bool reset : {true, false}) {
      Client client(server.port());
      client.send(long_request(stream));
      if (stream) {
        EXPECT_EQ(client.read_head().status, 200);
        EXPECT_FALSE(client.read_frame().empty());
        EXPECT_FALSE(client.read_frame().empty());
      } else {
        EXPECT_TRUE(eventually([&] { return server.stats().generation_tokens > 2; }));
      }
      EXPECT_TRUE(eventually([&] { return server.stats().running == 1; }));
      reset ? client.reset() : client.close();
      EXPECT_TRUE(eventually([&] { return server.stats().running == 0; }, milliseconds(1'000)));
      ++expected;
    }
  }
  EXPECT_EQ(cancelled(server), expected);
  EXPECT_LT(server.stats().generation_tokens, 2000U);
  EXPECT_EQ(server.complete({{"prompt", ">"}, {"max_tokens", 1}}).status, 200);
}

// [ikawrakow/ik_llama.cpp#1020] [ggml-org/llama.cpp#18292]
TEST(Disconnect, StopsAPrefillAtTheNextChunk) {
  const TestServer server(slow_script(milliseconds(20)));
  const std::string prompt(4000, 'x');  // 32 passes of 128 tokens.
  Client client(server.port());
  client.send(post("/v1/completions", json{{"prompt", prompt}, {"max_tokens", 4}}.dump()));
  EXPECT_TRUE(eventually([&] { return server.stats().running == 1; }));
  client.close();
  EXPECT_TRUE(eventually([&] { return server.stats().running == 0; }, milliseconds(400)));
  EXPECT_LT(server.stats().prompt_tokens, 4000U);
}

// [ggml-org/llama.cpp#13262] [ikawrakow/ik_llama.cpp#1929]
TEST(Disconnect, OfAQueuedRequestTouchesNobodyElse) {
  Script script = slow_script();
  script.sequences = 1;
  const TestServer server(script);
  Client running(server.port());
  running.send(long_request(false, 100));
  EXPECT_TRUE(eventually([&] { return server.stats().running == 1; }));
  {
    Client queued(server.port());
    queued.send(long_request(false, 100));
    EXPECT_TRUE(eventually([&] { return server.stats().waiting == 1; }));
  }
  EXPECT_TRUE(eventually([&] { return server.stats().waiting == 0; }));
  const json body = running.read_reply().parsed();
  EXPECT_EQ(body.at("choices").at(0).at("text"), std::string(100, '.'));
  // The statistics follow the answer by a moment.
  EXPECT_TRUE(eventually([&] { return server.stats().generation_tokens == 100; }));
  EXPECT_EQ(server.stats().generation_tokens, 100U);
}

/// So many long requests, one of them running. One after the other: the first begins in the queue
/// too, where the last would find no place.
std::vector<std::unique_ptr<Client>> fill(const TestServer& server, std::size_t requests) {
  std::vector<std::unique_ptr<Client>> held;
  for (std::size_t i = 0; i < requests; ++i) {
    held.push_back(std::make_unique<Client>(server.port()));
    held.back()->send(long_request(true));
    EXPECT_TRUE(
        eventually([&] { return server.stats().running == 1 && server.stats().waiting == i; }));
  }
  return held;
}

// [ollama/ollama#4124]
TEST(Overload, IsRefusedAtOnceWithRetryAfter) {
  Script script = slow_script();
  script.sequences = 1;
  script.queue = 10;
  const TestServer server(script);
  const auto held = fill(server, 11);
  for (int i = 0; i < 30; ++i) {
    const auto start = Clock::now();
    const Reply reply = server.ask(long_request(i % 2 == 0));
    EXPECT_EQ(reply.status, 503);
    const int wait_seconds = std::stoi(reply.header("retry-after"));
    EXPECT_GE(wait_seconds, 1);
    EXPECT_LE(wait_seconds, 60);
    EXPECT_EQ(reply.header("content-type"), "application/json");
    EXPECT_EQ(reply.parsed().at("error").at("type"), "unavailable_error");
    EXPECT_EQ(reply.parsed().at("error").at("code"), "queue_full");
    EXPECT_LT(Seconds(Clock::now() - start).count(), 1.0);
  }
  EXPECT_EQ(server.metric("spel_requests_rejected_total"), 30);
}

TEST(Overload, RetryAfterFollowsWhatRequestsHaveTaken) {
  Script script = slow_script();
  script.sequences = 1;
  script.queue = 4;
  TestServer server(script);
  EXPECT_EQ(server.ask(long_request(false, 300)).status, 200);  // 0.6 s and more.
  const double each = server.app().metrics().service_seconds();
  EXPECT_GT(each, 0.5);
  const auto held = fill(server, 5);
  const Reply reply = server.ask(long_request(false));
  EXPECT_EQ(reply.status, 503);
  EXPECT_EQ(reply.header("retry-after"), std::to_string(static_cast<int>(std::ceil(4 * each))));
}

// Two run side by side and two wait: whichever runs out of time first, its cancelled siblings do
// not change what the client is told.
TEST(Overload, RunningOutOfTimeIsSaidAsSuchForEveryNumberOfChoices) {
  Script script = slow_script(milliseconds(1));
  script.sequences = 2;
  const TestServer server(script,
                          [](config::ServerConfig& c) { c.request_timeout = milliseconds(40); });
  for (int round = 0; round < 10; ++round) {
    for (const int n : {1, 2, 4}) {
      const Reply reply =
          server.complete({{"prompt", ">"}, {"max_tokens", 3000}, {"n", n}, {"temperature", 1}});
      EXPECT_EQ(reply.status, 504) << "n " << n << ", round " << round << ": " << reply.body;
    }
  }
}

TEST(Heartbeat, BreaksTheSilenceOfAStreamThatWaits) {
  Script script = slow_script();
  script.sequences = 1;
  const TestServer server(script,
                          [](config::ServerConfig& c) { c.stream_heartbeat = milliseconds(20); });
  Client running(server.port());
  running.send(long_request(true, 200));
  EXPECT_TRUE(eventually([&] { return server.stats().running == 1; }));
  Client queued(server.port());
  queued.send(long_request(true, 5));
  EXPECT_EQ(queued.read_head().status, 200);
  EXPECT_EQ(server.stats().waiting, 1U);
  std::size_t beats = 0;
  std::string frames;
  for (std::string frame; !(frame = queued.read_frame()).empty();) {
    if (frame.front() == ':') {
      ++beats;
    } else {
      frames += frame;
    }
  }
  EXPECT_GE(beats, 3U);
  const Streamed streamed = parse_stream(frames);
  EXPECT_TRUE(streamed.done);
  EXPECT_EQ(streamed.text, ".....");
}

TEST(Heartbeat, IsOffUnlessAskedFor) {
  Script script = slow_script(milliseconds(30));
  const TestServer server(script);
  Client client(server.port());
  client.send(long_request(true, 10));
  EXPECT_EQ(client.read_head().status, 200);
  for (std::string frame; !(frame = client.read_frame()).empty();) {
    EXPECT_NE(frame.front(), ':');
  }
}

// [ggml-org/llama.cpp#20684]
TEST(Overload, HealthIsAnsweredWhileEverythingIsBusy) {
  const TestServer server(slow_script());
  std::vector<std::unique_ptr<Client>> streams;
  for (int i = 0; i < 12; ++i) {
    streams.push_back(std::make_unique<Client>(server.port()));
    streams.back()->send(long_request(true));
  }
  EXPECT_TRUE(eventually([&] { return server.stats().running == 4; }));
  for (int i = 0; i < 50; ++i) {
    EXPECT_EQ(server.ask(get("/health")).status, 200);
  }
}

TEST(Overload, TooManyConnectionsLeaveRoomForProbes) {
  const TestServer server(slow_script(), [](config::ServerConfig& c) { c.connections = 4; });
  std::vector<std::unique_ptr<Client>> held;
  for (int i = 0; i < 4; ++i) {
    held.push_back(std::make_unique<Client>(server.port()));
    held.back()->send(get("/health"));
    EXPECT_EQ(held.back()->read_reply().status, 200);
  }
  EXPECT_EQ(server.ask(get("/health")).status, 200);
  // The one that asked for health may still be closing.
  EXPECT_TRUE(eventually([&] { return server.metric("spel_http_connections") == 5; }));
  const Reply refused = server.ask(long_request(false));
  EXPECT_EQ(refused.status, 503);
  EXPECT_EQ(refused.header("retry-after"), "1");
  held.clear();
  EXPECT_TRUE(eventually(
      [&] { return server.complete({{"prompt", ">"}, {"max_tokens", 1}}).status == 200; }));
}

// [Hal0ai/hal0#1969]
TEST(Loading, AllEndpointsAgree) {
  TestServer server{TestServer::Loading{}};
  const std::string completion = post("/v1/completions", R"({"prompt":"a","max_tokens":1})");
  const std::vector<std::string> requests = {get("/health"),    get("/health/ready"),
                                             get("/v1/models"), get("/v1/models/scripted"),
                                             get("/v1/stats"),  completion};
  for (const std::string& request : requests) {
    const Reply reply = server.ask(request);
    EXPECT_EQ(reply.status, 503) << request;
    EXPECT_EQ(reply.header("retry-after"), "1") << request;
    EXPECT_TRUE(reply.parsed().contains("error")) << request;
  }
  EXPECT_EQ(server.ask(get("/health/live")).status, 200);
  EXPECT_EQ(server.metric("spel_server_state{state=\"loading\"}"), 1);
  server.finish_loading(ascii_script("ok"));
  for (const std::string& request : requests) {
    EXPECT_EQ(server.ask(request).status, 200) << request;
  }
}

TEST(Shutdown, WhileLeavingItWorksAndSaysThatItIsNotReady) {
  TestServer server(ascii_script("ok"));
  const std::string completion = post("/v1/completions", R"({"prompt":">","max_tokens":2})");
  Client kept(server.port());
  kept.send(get("/health"));
  EXPECT_EQ(kept.read_reply().status, 200);
  EXPECT_TRUE(server.app().begin_leaving());
  for (const char* path : {"/health", "/health/ready"}) {
    const Reply ready = server.ask(get(path));
    EXPECT_EQ(ready.status, 503) << path;
    EXPECT_NE(ready.body.find("draining"), std::string::npos) << ready.body;
  }
  EXPECT_EQ(server.ask(get("/health/live")).status, 200);
  EXPECT_EQ(server.metric("spel_server_state{state=\"draining\"}"), 1);
  EXPECT_EQ(server.metric("spel_server_state{state=\"ready\"}"), 0);
  // New connections and kept ones are served; the answer says that it is the last.
  EXPECT_EQ(server.ask(completion).status, 200);
  kept.send(completion);
  const Reply last = kept.read_reply();
  EXPECT_EQ(last.status, 200);
  EXPECT_EQ(last.header("connection"), "close");
  EXPECT_TRUE(kept.closed());
  EXPECT_FALSE(server.app().begin_leaving());
}

TEST(Shutdown, StreamsRunToTheirEndAndNobodyNewGetsIn) {
  auto server = std::make_unique<TestServer>(slow_script());
  const std::uint16_t port = server->port();
  Client idle(port);
  idle.send(get("/health"));
  EXPECT_EQ(idle.read_reply().status, 200);
  Client stream(port);
  stream.send(long_request(true, 50));
  EXPECT_EQ(stream.read_head().status, 200);

  server->app().begin_drain();
  EXPECT_TRUE(idle.closed(milliseconds(1'000)));
  EXPECT_TRUE(eventually(
      [&] {
        try {
          Client late(port);
          late.send(get("/health"));
          return late.read_reply().status == 0;
        } catch (const std::runtime_error&) {
          return true;
        }
      },
      milliseconds(1'000)));
  std::string text;
  std::string frame;
  while (!(frame = stream.read_frame()).empty()) {
    text += frame;
  }
  EXPECT_TRUE(parse_stream(text).done);
  EXPECT_EQ(parse_stream(text).text, std::string(50, '.'));
  EXPECT_TRUE(server->app().wait_drained(Clock::now() + std::chrono::seconds(3)));
  server.reset();
  // The port is free again at once.
  const TestServer next(ascii_script("ok"), [&](config::ServerConfig& c) { c.port = port; });
  EXPECT_EQ(next.ask(get("/health")).status, 200);
}

// [containers/ramalama#753] is tested on a process, in tests/integration.
TEST(Shutdown, WhatDoesNotEndInTimeIsCancelledAndTold) {
  TestServer server(slow_script());
  std::vector<std::unique_ptr<Client>> streams;
  for (std::size_t i = 0; i < 6; ++i) {  // Four run, two wait.
    streams.push_back(std::make_unique<Client>(server.port()));
    streams.back()->send(long_request(true));
    const std::size_t running = std::min<std::size_t>(i + 1, 4);
    ASSERT_TRUE(eventually([&] { return server.stats().running == running; })) << i;
  }
  Client whole(server.port());
  whole.send(long_request(false));
  EXPECT_TRUE(eventually([&] { return server.stats().waiting == 3; }));
  for (int i = 0; i < 4; ++i) {
    EXPECT_EQ(streams[static_cast<std::size_t>(i)]->read_head().status, 200);
  }
  server.app().begin_drain();
  EXPECT_FALSE(server.app().wait_drained(Clock::now() + milliseconds(50)));
  server.app().cancel_generations();
  EXPECT_TRUE(server.app().wait_drained(Clock::now() + std::chrono::seconds(3)));
  for (std::size_t i = 0; i < streams.size(); ++i) {
    const std::string rest = streams[i]->read_all();
    EXPECT_NE(rest.find("\"error\""), std::string::npos) << i;
    EXPECT_EQ(rest.find("[DONE]"), std::string::npos) << i;
  }
  const Reply reply = whole.read_reply();
  EXPECT_EQ(reply.status, 503);
  EXPECT_EQ(reply.header("retry-after"), "1");
}

// [vllm-project/vllm#1288]
TEST(Listening, LocalhostBindsWhatThereIs) {
  const TestServer server(ascii_script("ok"),
                          [](config::ServerConfig& c) { c.host = "localhost"; });
  EXPECT_EQ(server.ask(get("/health")).status, 200);
}

TEST(Listening, OnFewerAddressesThanThereAreIsAnError) {
  for (const char* taken : {"127.0.0.1", "::1"}) {
    std::unique_ptr<TestServer> other;
    try {
      other = std::make_unique<TestServer>(ascii_script("ok"),
                                           [&](config::ServerConfig& c) { c.host = taken; });
    } catch (const Error&) {
      GTEST_SKIP() << "this machine has no address " << taken;
    }
    try {
      const TestServer server(TestServer::Loading{}, [&](config::ServerConfig& c) {
        c.host = "localhost";
        c.port = other->port();
      });
      ADD_FAILURE() << "listens beside " << taken;
    } catch (const Error& error) {
      EXPECT_NE(std::string(error.what()).find(taken), std::string::npos) << error.what();
    }
  }
}

TEST(Listening, AnAddressInUseIsAnError) {
  const TestServer server(ascii_script("ok"));
  EXPECT_THROW(
      TestServer(TestServer::Loading{}, [&](config::ServerConfig& c) { c.port = server.port(); }),
      Error);
}

TEST(Concurrency, EveryoneGetsTheirOwnText) {
  const TestServer server(ascii_script("the quick brown fox"));
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; ++t) {
    threads.emplace_back([&server, t] {
      for (int i = 0; i < 20; ++i) {
        const int length = 1 + (t * 7 + i) % 19;
        const json request = {{"prompt", ">"}, {"max_tokens", length}, {"temperature", 0}};
        const std::string expected =
            std::string("the quick brown fox").substr(0, static_cast<std::size_t>(length));
        if (i % 2 == 0) {
          const Reply reply = server.complete(request);
          if (reply.status == 200) {
            EXPECT_EQ(reply.parsed().at("choices").at(0).at("text"), expected);
          } else {
            EXPECT_EQ(reply.status, 503);
          }
        } else {
          const Streamed streamed = server.stream(request);
          if (streamed.done) {
            EXPECT_EQ(streamed.text, expected);
          }
        }
      }
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
}

}  // namespace
}  // namespace spel::server::testing
