// HTTP/1.1 as clients, proxies and attackers speak it. Names in brackets are the public reports
// whose fault must not come back.
#include <gtest/gtest.h>
#include <random>
#include <sstream>
#include <thread>

#include "support.h"

namespace spel::server::testing {
namespace {

const std::string kBody = R"({"prompt":">","max_tokens":2,"temperature":0})";

std::string chunk(const std::string& bytes, const std::string& extension = {}) {
  std::ostringstream size;
  size << std::hex << bytes.size();
  return size.str() + extension + "\r\n" + bytes + "\r\n";
}

std::string chunked_post(const std::string& chunks) {
  return "POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n" +
         chunks;
}

/// A valid request of exactly `bytes`, padded in a member that is ignored.
std::string body_of(std::size_t bytes) {
  const std::string begin = R"({"prompt":">","max_tokens":1,"user":")";
  return begin + std::string(bytes - begin.size() - 2, 'x') + "\"}";
}

class Http : public ::testing::Test {
 protected:
  static void adjust(config::ServerConfig& config) {
    config.header_timeout = milliseconds(300);
    config.body_timeout = milliseconds(400);
    config.idle_timeout = milliseconds(600);
    config.write_timeout = milliseconds(500);
  }
  TestServer server_{ascii_script("ok"), adjust};
};

/// One answer with this status, then the connection's end.
void expect_refused(const TestServer& server, const std::string& bytes, int status) {
  Client client(server.port());
  client.send(bytes);
  const Reply reply = client.read_reply();
  EXPECT_EQ(reply.status, status) << bytes.substr(0, 120);
  EXPECT_EQ(reply.header("connection"), "close") << bytes.substr(0, 120);
  EXPECT_EQ(client.read_all(), "") << "a second answer to " << bytes.substr(0, 120);
}

// [litespeedtech/openlitespeed#392] [boostorg/beast#3098] [unbit/uwsgi#2775]
TEST_F(Http, SmuggledRequestsAreNotAnswered) {
  const std::string hidden = "GET /v1/models HTTP/1.1\r\nHost: localhost\r\n\r\n";
  const auto with = [&](const std::string& fields, const std::string& rest) {
    return "POST /v1/completions HTTP/1.1\r\nHost: localhost\r\n" + fields + "\r\n" + rest;
  };
  expect_refused(
      server_,
      with("Content-Length: 0\r\nTransfer-Encoding: chunked\r\n", chunk(hidden) + "0\r\n\r\n"),
      400);
  expect_refused(server_,
                 with("Transfer-Encoding: gzip\r\nContent-Length: 5\r\n", "abcde" + hidden), 501);
  expect_refused(server_, with("Transfer-Encoding: xchunked\r\n", hidden), 501);
  expect_refused(server_, with("Transfer-Encoding: chunked, identity\r\n", hidden), 501);
  expect_refused(server_, with("Content-Length: 5\r\nContent-Length: 4\r\n", "abcde" + hidden),
                 400);
  expect_refused(server_, with("Content-Length: 5, 5\r\n", "abcde" + hidden), 400);
  expect_refused(server_, with("Content-Length: 18446744073709551616\r\n", hidden), 400);
  expect_refused(server_, with("X: a\r\n b\r\n", hidden), 400);
  expect_refused(server_, "GET / HTTP/1.1\r\n\r\n" + hidden, 400);
}

// [ggml-org/llama.cpp#22888]
TEST_F(Http, ChunkSizesArePlainHex) {
  for (const char* size : {"-2", "0x5", "fffffffffffffffff", "", "5 5", "g", "+5"}) {
    expect_refused(server_, chunked_post(std::string(size) + "\r\nabcde\r\n0\r\n\r\n"), 400);
  }
  const Reply plain = server_.ask(chunked_post(chunk(kBody) + "0\r\n\r\n"));
  EXPECT_EQ(plain.status, 200) << plain.body;
  const Reply extended = server_.ask(chunked_post(chunk(kBody, ";ext=1") + "0\r\n\r\n"));
  EXPECT_EQ(extended.status, 200) << extended.body;
  expect_refused(server_, chunked_post(chunk(kBody, ";" + std::string(20'000, 'e'))), 400);
}

TEST_F(Http, FramingMayNotCostMoreThanTheWireBudget) {
  const TestServer small(ascii_script("ok"), [](config::ServerConfig& config) {
    config.body_bytes = 4096;
    config.wire_bytes = 16'384;
  });
  std::string chunks;
  for (int i = 0; i < 4000; ++i) {
    chunks += "1;extension\r\nx\r\n";
  }
  expect_refused(small, chunked_post(chunks), 413);
}

// [ggml-org/llama.cpp#4500] [agentgateway/agentgateway#2359]
TEST_F(Http, BodiesUpToTheLimitAreTaken) {
  constexpr std::size_t kLimit = std::size_t{1} << 20;
  for (const std::size_t bytes : {std::size_t{8192}, std::size_t{65536}, kLimit - 1, kLimit}) {
    const std::string body = body_of(bytes);
    EXPECT_EQ(server_.ask(post("/v1/completions", body)).status, 200) << bytes;
    EXPECT_EQ(server_.ask(chunked_post(chunk(body) + "0\r\n\r\n")).status, 200) << bytes;
  }
  // One more is refused before it is sent …
  expect_refused(server_,
                 "POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: " +
                     std::to_string(kLimit + 1) + "\r\n\r\n",
                 413);
  // … and as what it is when its length comes with it.
  expect_refused(server_, chunked_post(chunk(body_of(kLimit + 1)) + "0\r\n\r\n"), 413);
}

// [OpenAPITools/openapi-generator#24783] [ceph/ceph#49642]
TEST_F(Http, ExpectContinueIsAnsweredBeforeTheBody) {
  Client client(server_.port());
  const std::string fields = "Expect: 100-continue\r\nContent-Length: ";
  client.send("POST /v1/completions HTTP/1.1\r\nHost: localhost\r\n" + fields +
              std::to_string(kBody.size()) + "\r\n\r\n");
  EXPECT_EQ(client.read_reply().status, 100);
  client.send(kBody);
  EXPECT_EQ(client.read_reply().status, 200);

  const std::string next = get("/health");
  expect_refused(
      server_,
      "POST /v1/completions HTTP/1.1\r\nHost: localhost\r\n" + fields + "2000000\r\n\r\n" + next,
      413);
  // Refused for its path: what follows is not taken for a body, nor the body for a request.
  expect_refused(
      server_, "POST /nowhere HTTP/1.1\r\nHost: localhost\r\n" + fields + "10\r\n\r\n" + next, 404);
}

// [ollama/ollama#5483] [0xPlaygrounds/rig#655] [ollama/ollama#2736]
TEST_F(Http, WrongMethodsAndPathsAreToldInJson) {
  const auto method = [&](const std::string& verb, const std::string& path) {
    return server_.ask(verb + " " + path + " HTTP/1.1\r\nHost: localhost\r\n\r\n");
  };
  const Reply wrong = method("GET", "/v1/completions");
  EXPECT_EQ(wrong.status, 405);
  EXPECT_EQ(wrong.header("allow"), "POST");
  EXPECT_EQ(wrong.parsed().at("error").at("type"), "invalid_request_error");
  EXPECT_EQ(method("POST", "/health").header("allow"), "GET, HEAD");
  EXPECT_EQ(method("PUT", "/metrics").status, 405);
  EXPECT_EQ(method("GET", "/v1/models/").status, 200);
  EXPECT_EQ(server_.ask(post("//v1/completions", kBody)).status, 200);
  for (const char* path : {"/nope", "/v1", "/v1/completionsx", "/health/x", "/v1/%6dodels"}) {
    const Reply reply = method("GET", path);
    EXPECT_EQ(reply.status, 404) << path;
    EXPECT_TRUE(reply.parsed().contains("error")) << path;
  }
  EXPECT_EQ(method("OPTIONS", "/v1/completions").header("allow"), "POST");
  EXPECT_EQ(method("OPTIONS", "*").status, 204);
  EXPECT_EQ(method("get", "/health").status, 501);
}

TEST_F(Http, HeadSendsTheHeaderOnly) {
  Client client(server_.port());
  client.send("HEAD /health HTTP/1.1\r\nHost: localhost\r\n\r\n");
  const Reply head = client.read_reply(true);
  EXPECT_EQ(head.status, 200);
  EXPECT_NE(head.header("content-length"), "0");
  client.send(get("/health"));
  EXPECT_EQ(client.read_reply().status, 200);
}

TEST_F(Http, LimitsOfTheHeader) {
  expect_refused(server_, "GET /" + std::string(9000, 'a'), 414);
  expect_refused(server_, get("/health", "X: " + std::string(9000, 'a') + "\r\n"), 431);
  std::string fields;
  for (int i = 0; i < 101; ++i) {
    fields += "A:\r\n";
  }
  expect_refused(server_, get("/health", fields), 431);
}

// [civetweb/civetweb#1353]
TEST_F(Http, SlowRequestsRunIntoADeadlineForTheWhole) {
  const auto drip = [&](const std::string& begin, const std::string& byte) {
    Client client(server_.port());
    client.send(begin);
    const auto start = std::chrono::steady_clock::now();
    for (int i = 0; i < 15; ++i) {
      std::this_thread::sleep_for(milliseconds(60));
      client.send(byte);
    }
    const Reply reply = client.read_reply();
    EXPECT_EQ(reply.status, 408);
    EXPECT_EQ(reply.header("connection"), "close");
    EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(4));
  };
  drip("GET / HTTP/1.1\r\nX: ", "a");
  drip(chunked_post("0000"), "0");
  drip("POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000\r\n\r\n", " ");
}

TEST_F(Http, SilentConnectionsAreClosedWithoutAWord) {
  Client fresh(server_.port());
  Client used(server_.port());
  used.send(get("/health"));
  EXPECT_EQ(used.read_reply().status, 200);
  EXPECT_EQ(fresh.read_all(), "");
  EXPECT_EQ(used.read_all(), "");
}

TEST_F(Http, PipelinedRequestsAreAnsweredInOrder) {
  Client client(server_.port());
  client.send(get("/health") + post("/v1/completions", kBody) + get("/v1/models") + "\r\n" +
              get("/nope"));
  EXPECT_EQ(client.read_reply().status, 200);
  EXPECT_EQ(client.read_reply().parsed().at("object"), "text_completion");
  EXPECT_EQ(client.read_reply().parsed().at("object"), "list");
  EXPECT_EQ(client.read_reply().status, 404);
}

TEST_F(Http, AConnectionIsUsableAfterAStream) {
  Client client(server_.port());
  const std::string stream = R"({"prompt":">","max_tokens":30,"stream":true})";
  for (int i = 0; i < 3; ++i) {
    client.send(post("/v1/completions", stream));
    const Reply reply = client.read_reply();
    EXPECT_EQ(reply.status, 200);
    EXPECT_FALSE(reply.truncated);
    client.send(get("/health"));
    EXPECT_EQ(client.read_reply().status, 200);
  }
  // The next request may already be there while the stream runs.
  client.send(post("/v1/completions", stream) + get("/health"));
  EXPECT_TRUE(parse_stream(client.read_reply().body).done);
  EXPECT_EQ(client.read_reply().status, 200);
}

TEST_F(Http, AnOldClientsStreamEndsWithTheConnection) {
  Client client(server_.port());
  const std::string body = R"({"prompt":">","max_tokens":2,"stream":true})";
  client.send("POST /v1/completions HTTP/1.0\r\nConnection: keep-alive\r\nContent-Length: " +
              std::to_string(body.size()) + "\r\n\r\n" + body);
  const Reply reply = client.read_reply();
  EXPECT_EQ(reply.header("transfer-encoding"), "");
  EXPECT_EQ(reply.header("connection"), "close");
  EXPECT_EQ(parse_stream(reply.body).text, "ok");
  EXPECT_TRUE(parse_stream(reply.body).done);

  Client kept(server_.port());
  kept.send("GET /health HTTP/1.0\r\nConnection: keep-alive\r\n\r\n");
  EXPECT_EQ(kept.read_reply().header("connection"), "keep-alive");
  kept.send("GET /health HTTP/1.0\r\n\r\n");
  EXPECT_EQ(kept.read_reply().header("connection"), "close");
  EXPECT_TRUE(kept.closed());
}

TEST_F(Http, RequestIdsAreEchoedOnlyWhenHarmless) {
  EXPECT_EQ(server_.ask(get("/health", "X-Request-Id: abc-1.2_3\r\n")).header("x-request-id"),
            "abc-1.2_3");
  for (const std::string& id : {std::string("a b"), std::string("<x>"), std::string(65, 'a')}) {
    const std::string given =
        server_.ask(get("/health", "X-Request-Id: " + id + "\r\n")).header("x-request-id");
    EXPECT_TRUE(given.starts_with("req-")) << given;
  }
}

// [commandcode-proxy#20] A reader that stops reading is dropped and its sequence freed.
TEST_F(Http, AStalledReaderIsDropped) {
  Client client(server_.port());
  client.shrink_receive_buffer();
  const std::string body =
      R"({"prompt":">","max_tokens":4000,"stream":true,"logprobs":5,"temperature":0})";
  client.send(post("/v1/completions", body));
  EXPECT_TRUE(eventually([&] { return server_.stats().running == 1; }));
  EXPECT_TRUE(eventually([&] { return server_.stats().running == 0; }, milliseconds(8'000)));
  EXPECT_TRUE(server_.wait_idle());
  EXPECT_EQ(server_.complete({{"prompt", ">"}, {"max_tokens", 1}}).status, 200);
}

TEST_F(Http, MutatedRequestsGetAnAnswerOrTheEndAndNeverAServerError) {
  const std::vector<std::string> seeds = {
      get("/health"),
      post("/v1/completions", kBody),
      chunked_post(chunk(kBody, ";a=b") + "0\r\nX: y\r\n\r\n"),
      "GET http://localhost/health HTTP/1.0\r\nConnection: keep-alive\r\n\r\n",
      post("/tokenize", R"({"content":"hey","with_pieces":true})"),
  };
  const std::vector<std::string> pieces = {
      "\r\n",       "\r",   "\n", "\0",       " ",
      ":",          "0",    "-1", "chunked",  "ffffffffffffffff",
      "\xff",       "[[[[", "\"", "HTTP/1.1", "Content-Length: 3\r\n",
      "Host: b\r\n"};
  constexpr unsigned kSeed = 20240607;
  std::minstd_rand random(kSeed);
  const auto below = [&](std::size_t n) { return static_cast<std::size_t>(random()) % n; };
  for (int i = 0; i < 400; ++i) {
    std::string bytes = seeds[below(seeds.size())];
    for (std::size_t edits = 1 + below(4); edits > 0; --edits) {
      const std::size_t at = below(bytes.size());
      if (below(3) == 0) {
        bytes.erase(at, 1 + below(4));
      } else if (below(2) == 0) {
        bytes[at] = static_cast<char>(below(256));
      } else {
        bytes.insert(at, pieces[below(pieces.size())]);
      }
      if (bytes.empty()) {
        bytes = "x";
      }
    }
    Client client(server_.port(), milliseconds(2'000));
    client.send(bytes);
    const Reply reply = client.read_head();
    const bool fine = reply.status < 500 || reply.status == 501 || reply.status == 505;
    EXPECT_TRUE(fine) << "seed " << kSeed << " round " << i << ": " << reply.status << "\n"
                      << bytes;
  }
  EXPECT_EQ(server_.ask(get("/health")).status, 200);
}

TEST_F(Http, TheLivePageAndTheDescriptionAreServed) {
  const Reply page = server_.ask(get("/"));
  EXPECT_EQ(page.status, 200);
  EXPECT_TRUE(page.header("content-type").starts_with("text/html"));
  const json description = server_.ask(get("/openapi.json")).parsed();
  EXPECT_TRUE(description.at("paths").contains("/v1/completions"));
}

TEST_F(Http, NoteBankSaysThatItIsNotThere) {
  EXPECT_EQ(server_.ask(get("/v1/notebanks")).status, 501);
  EXPECT_EQ(server_.ask(post("/v1/notebanks/b/write", "{}")).status, 501);
  EXPECT_EQ(server_.ask(post("/v1/notebanks/b/forget", "{}")).status, 404);
}

}  // namespace
}  // namespace spel::server::testing
