// /metrics. Names in brackets are the public reports whose fault must not come back.
#include "server/metrics.h"

#include <cstdio>
#include <fstream>
#include <gtest/gtest.h>
#include <thread>

#include "support.h"

namespace spel::server::testing {
namespace {

std::size_t count_series(const std::string& page) {
  std::istringstream lines(page);
  std::size_t count = 0;
  for (std::string line; std::getline(lines, line);) {
    count += !line.empty() && line.front() != '#' ? 1U : 0U;
  }
  return count;
}

/// Lines of `page` that no Prometheus parser would take.
std::vector<std::string> malformed_lines(const std::string& page) {
  std::vector<std::string> bad;
  std::istringstream lines(page);
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("# HELP ") || line.starts_with("# TYPE ")) {
      continue;
    }
    const std::size_t space = line.rfind(' ');
    char* end = nullptr;
    const double value =
        space == std::string::npos ? 0 : std::strtod(line.c_str() + space + 1, &end);
    if (end == nullptr || *end != '\0' || value < 0 || value != value) {
      bad.push_back(line);
    }
  }
  return bad;
}

// [ggml-org/llama.cpp#17384]
TEST(Metrics, IsPlainTextThatAParserTakes) {
  const TestServer server(ascii_script("hello"));
  ASSERT_EQ(server.complete({{"prompt", ">"}, {"max_tokens", 5}}).status, 200);
  const Reply reply = server.ask(get("/metrics"));
  EXPECT_EQ(reply.header("content-type"), "text/plain; version=0.0.4; charset=utf-8");
  EXPECT_TRUE(reply.body.ends_with("\n"));
  EXPECT_EQ(malformed_lines(reply.body), std::vector<std::string>());
  for (const char* name :
       {"spel_acceptance_ratio", "spel_draft_cost_ratio", "spel_verify_cost_ratio",
        "spel_tokens_per_second", "spel_spec_decode_num_drafts_total",
        "spel_spec_decode_num_accepted_tokens_per_pos_total{position=\"0\"}",
        "spel_time_to_first_token_seconds_count", "spel_inter_token_latency_seconds_count",
        "spel_e2e_request_latency_seconds_count", "spel_request_queue_time_seconds_count",
        "spel_num_requests_running", "spel_prompt_tokens_total",
        "spel_request_success_total{finished_reason=\"length\"}", "process_open_fds"}) {
    EXPECT_NE(reply.body.find(std::string("\n") + name + " "), std::string::npos) << name;
  }
}

TEST(Metrics, PromtoolHasNothingToSay) {
  if (std::system("command -v promtool >/dev/null 2>&1") != 0) {
    GTEST_SKIP() << "promtool is not installed";
  }
  const TestServer server(ascii_script("hello"));
  ASSERT_EQ(server.complete({{"prompt", ">"}, {"max_tokens", 5}}).status, 200);
  const std::string path =
      ::testing::TempDir() + "metrics." + std::to_string(server.port()) + ".txt";
  std::ofstream(path) << server.ask(get("/metrics")).body;
  EXPECT_EQ(std::system(("promtool check metrics < " + path).c_str()), 0);
  std::remove(path.c_str());
}

// [vllm-project/vllm#55634] [vllm-project/vllm#31503] [vllm-project/vllm#10430]
TEST(Metrics, ReconcileAtRest) {
  Script script = ascii_script("");
  script.delay = milliseconds(1);
  const TestServer server(script);
  for (int i = 0; i < 5; ++i) {
    EXPECT_EQ(server.complete({{"prompt", ">"}, {"max_tokens", 4}}).status, 200);
    Client client(server.port());
    client.send(post("/v1/completions",
                     R"({"prompt":">","max_tokens":3000,"stream":true,"temperature":0})"));
    EXPECT_EQ(client.read_head().status, 200);
    client.close();
  }
  EXPECT_TRUE(server.wait_idle());
  const auto finished = [&](const std::string& result) {
    return server.metric("spel_requests_finished_total{result=\"" + result + "\"}");
  };
  EXPECT_EQ(server.metric("spel_requests_started_total"), 10);
  EXPECT_EQ(finished("ok"), 5);
  EXPECT_EQ(finished("cancelled"), 5);
  EXPECT_EQ(finished("error"), 0);
  EXPECT_EQ(server.metric("spel_num_requests_running"), 0);
  EXPECT_EQ(server.metric("spel_num_requests_waiting"), 0);
  // Every generation that ended is in the histograms, and its tokens under its result.
  EXPECT_TRUE(
      eventually([&] { return server.metric("spel_e2e_request_latency_seconds_count") == 10; }));
  EXPECT_EQ(server.metric("spel_request_generation_tokens_total{result=\"ok\"}") +
                server.metric("spel_request_generation_tokens_total{result=\"cancelled\"}"),
            server.metric("spel_generation_tokens_total"));
}

TEST(Metrics, ARequestsTimeBeginsWhenItsHeaderHasBeenRead) {
  constexpr milliseconds kBodyTakes(60);
  const TestServer server(ascii_script("hello"));
  Client client(server.port());
  const std::string body = R"({"prompt":">","max_tokens":5})";
  client.send(
      "POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nExpect: 100-continue\r\n"
      "Content-Length: " +
      std::to_string(body.size()) + "\r\n\r\n");
  EXPECT_EQ(client.read_reply().status, 100);  // The header has been read.
  std::this_thread::sleep_for(kBodyTakes);
  client.send(body);
  EXPECT_EQ(client.read_reply().status, 200);
  const double took = std::chrono::duration<double>(kBodyTakes).count();
  EXPECT_TRUE(
      eventually([&] { return server.metric("spel_e2e_request_latency_seconds_sum") >= took; }));
  EXPECT_GE(server.metric("spel_time_to_first_token_seconds_sum"), took);
}

// [headroomlabs-ai/headroom#2463]
TEST(Metrics, TheSpeedupIsThatOfTheReceipts) {
  const TestServer server(ascii_script("once upon a time there was"));
  double taken = 0.0;
  double plain = 0.0;
  for (const char* mode : {"on", "off", "on"}) {
    const json body = server
                          .complete({{"prompt", ">"},
                                     {"max_tokens", 60},
                                     {"temperature", 0},
                                     {"speculation", {{"mode", mode}, {"governor", "off"}}}})
                          .parsed();
    const json& receipt = body.at("speculation");
    ASSERT_EQ(receipt.at("proposed") > 0, std::string_view(mode) == "on");
    if (receipt.at("proposed") > 0 && !receipt.at("speedup").is_null()) {
      const double seconds = body.at("timings").at("predicted_ms").get<double>() / 1000.0;
      taken += seconds;
      plain += seconds * receipt.at("speedup").get<double>();
    }
  }
  EXPECT_TRUE(server.wait_idle());
  EXPECT_NEAR(server.metric("spel_speculated_seconds_total"), taken, 1e-9);
  EXPECT_NEAR(server.metric("spel_speculated_plain_seconds_total"), plain, 1e-9);
}

TEST(Metrics, WhatClientsSendMakesNoSeries) {
  const TestServer server(ascii_script("ok"));
  const std::size_t before = count_series(server.ask(get("/metrics")).body);
  EXPECT_EQ(server.complete({{"model", "a\"b\\c\nd"}, {"prompt", "x"}}).status, 404);
  Client client(server.port());
  for (int i = 0; i < 300; ++i) {
    const std::string name = "m" + std::to_string(i);
    client.send(post("/v1/completions", json{{"model", name}, {"prompt", "x"}}.dump()));
    EXPECT_EQ(client.read_reply().status, 404);
    client.send(get("/" + name));
    EXPECT_EQ(client.read_reply().status, 404);
    client.send(get("/v1/models/" + name));
    EXPECT_EQ(client.read_reply().status, 404);
  }
  const std::string page = server.ask(get("/metrics")).body;
  EXPECT_EQ(count_series(page), before);
  EXPECT_EQ(malformed_lines(page), std::vector<std::string>());
  EXPECT_EQ(server.metric("spel_http_requests_total{route=\"none\",status=\"4xx\"}"), 300);
}

TEST(Metrics, AClientThatLeavesEarlyIsNotAFaultyRequest) {
  const TestServer server(ascii_script("ok"));
  const std::string series = "spel_http_requests_total{route=\"/v1/completions\",status=\"";
  for (int i = 0; i < 3; ++i) {
    Client client(server.port());
    client.send("POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\n{");
    client.close();
  }
  EXPECT_TRUE(eventually([&] { return server.metric(series + "disconnected\"}") == 3; }));
  EXPECT_EQ(server.metric(series + "4xx\"}"), 0);
  EXPECT_EQ(server.complete({{"prompt", ""}}).status, 400);
  EXPECT_TRUE(eventually([&] { return server.metric(series + "4xx\"}") == 1; }));
}

// [ggml-org/llama.cpp#25128] [jupp0r/prometheus-cpp#529]: scrapes change nothing, also many at once
// under load.
TEST(Metrics, ScrapersDoNotDisturbEachOther) {
  const TestServer server(ascii_script("hello"));
  const double tokens_before = server.metric("spel_generation_tokens_total");
  std::vector<std::thread> threads;
  for (int t = 0; t < 3; ++t) {
    threads.emplace_back([&] {
      double last = 0;
      for (int i = 0; i < 20; ++i) {
        const double now = server.metric("spel_generation_tokens_total");
        EXPECT_GE(now, last);
        last = now;
      }
    });
  }
  for (int i = 0; i < 20; ++i) {
    EXPECT_EQ(server.complete({{"prompt", ">"}, {"max_tokens", 5}}).status, 200);
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  EXPECT_EQ(server.metric("spel_generation_tokens_total") - tokens_before, 100);
}

TEST(Metrics, UnknownFieldsAreCounted) {
  const TestServer server(ascii_script("ok"));
  EXPECT_EQ(server.complete({{"prompt", "a"}, {"shiny", 1}, {"new", 2}}).status, 200);
  EXPECT_EQ(server.metric("spel_unknown_fields_total"), 2);
}

TEST(Stats, TellTheSameAsTheMetrics) {
  const TestServer server(ascii_script("hello"));
  EXPECT_EQ(server.complete({{"prompt", ">"}, {"max_tokens", 5}}).status, 200);
  EXPECT_TRUE(server.wait_idle());
  const json stats = server.ask(get("/v1/stats")).parsed();
  EXPECT_EQ(stats.at("state"), "ready");
  EXPECT_EQ(stats.at("tokens").at("generated"), server.metric("spel_generation_tokens_total"));
  EXPECT_EQ(stats.at("requests").at("finished").at("length"),
            server.metric("spel_request_success_total{finished_reason=\"length\"}"));
  const json& positions = stats.at("speculation").at("accepted_by_position");
  EXPECT_EQ(positions.size(), limits::kSpecKMax);
  for (std::size_t i = 0; i < positions.size(); ++i) {
    EXPECT_EQ(positions.at(i),
              server.metric("spel_spec_decode_num_accepted_tokens_per_pos_total{position=\"" +
                            std::to_string(i) + "\"}"));
  }
}

}  // namespace
}  // namespace spel::server::testing
