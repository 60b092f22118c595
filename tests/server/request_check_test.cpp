// Headers that HTTP servers disagree about: each is refused, with one answer.
#include "server/request_check.h"

#include <gtest/gtest.h>

namespace spel::server {
namespace {

/// The status a header is refused with; 200 if it is accepted, 0 if it is not complete.
int judge(std::string_view bytes, const HeadLimits& limits = {}) {
  HeadScanner scanner(limits);
  switch (scanner.scan(bytes)) {
    case HeadScanner::State::kIncomplete:
      return 0;
    case HeadScanner::State::kRefused:
      return scanner.refusal().status;
    case HeadScanner::State::kComplete:
      break;
  }
  const auto checked = check_head(bytes.substr(0, scanner.size()));
  const auto* error = std::get_if<proto::ApiError>(&checked);
  return error != nullptr ? error->status : 200;
}

int judge_fields(const std::string& fields) {
  return judge("POST /x HTTP/1.1\r\nHost: a\r\n" + fields + "\r\n");
}

Head accept(std::string_view bytes) {
  HeadScanner scanner({});
  EXPECT_EQ(scanner.scan(bytes), HeadScanner::State::kComplete);
  auto checked = check_head(bytes.substr(0, scanner.size()));
  EXPECT_TRUE(std::holds_alternative<Head>(checked));
  return std::get<Head>(std::move(checked));
}

TEST(RequestCheck, FramingThatCouldBeReadTwoWaysIsRefused) {
  EXPECT_EQ(judge_fields("Content-Length: 5\r\nTransfer-Encoding: chunked\r\n"), 400);
  EXPECT_EQ(judge_fields("Transfer-Encoding: chunked\r\nContent-Length: 5\r\n"), 400);
  EXPECT_EQ(judge_fields("Content-Length: 5\r\nTransfer-Encoding: gzip\r\n"), 501);
  EXPECT_EQ(judge_fields("Transfer-Encoding: gzip\r\nContent-Length: 5\r\n"), 501);
  for (const char* coding : {"xchunked", "chunked, identity", "identity, chunked", "gzip, chunked",
                             "chunked\x0b", "\"chunked\"", "", "chunked;q=1"}) {
    EXPECT_GE(judge_fields("Transfer-Encoding: " + std::string(coding) + "\r\n"), 400) << coding;
  }
  EXPECT_EQ(judge_fields("Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n"), 501);
  for (const char* length :
       {"5, 5", "+5", "-1", "18446744073709551616", "0x5", "5 5", "", "5,", "1e3", "5.0"}) {
    EXPECT_EQ(judge_fields("Content-Length: " + std::string(length) + "\r\n"), 400) << length;
  }
  EXPECT_EQ(judge_fields("Content-Length: 5\r\nContent-Length: 5\r\n"), 400);
  EXPECT_EQ(judge_fields("Content-Length: 5\r\nContent-Length: 4\r\n"), 400);
  EXPECT_EQ(judge_fields("Content-Length: 5\r\n"), 200);
  EXPECT_EQ(judge_fields("Transfer-Encoding: Chunked\r\n"), 200);
}

TEST(RequestCheck, LinesThatAreNotFieldsAreRefused) {
  EXPECT_EQ(judge_fields("Content-Length : 5\r\n"), 400);
  EXPECT_EQ(judge_fields("X: a\r\n b\r\n"), 400);
  EXPECT_EQ(judge_fields("X: a\r\n\tb\r\n"), 400);
  EXPECT_EQ(judge_fields(": a\r\n"), 400);
  EXPECT_EQ(judge_fields("no colon\r\n"), 400);
  EXPECT_EQ(judge_fields("X: a\rb\r\n"), 400);
  EXPECT_EQ(judge_fields(std::string("X: a\0b\r\n", 8)), 400);
  EXPECT_EQ(judge_fields("X\x01: a\r\n"), 400);
  EXPECT_EQ(judge("GET / HTTP/1.1\nHost: a\n\n"), 400);
  EXPECT_EQ(judge(" GET / HTTP/1.1\r\nHost: a\r\n\r\n"), 400);
  EXPECT_EQ(judge("GET / HTTP/1.1\r\n Host: a\r\n\r\n"), 400);
}

TEST(RequestCheck, ExactlyOneHost) {
  EXPECT_EQ(judge("GET / HTTP/1.1\r\n\r\n"), 400);
  EXPECT_EQ(judge("GET / HTTP/1.1\r\nHost: a\r\nHost: a\r\n\r\n"), 400);
  EXPECT_EQ(judge("GET / HTTP/1.0\r\n\r\n"), 200);
}

TEST(RequestCheck, VersionsAndMethods) {
  EXPECT_EQ(judge("GET / HTTP/1.2\r\nHost: a\r\n\r\n"), 505);
  EXPECT_EQ(judge("GET / HTTP/2.0\r\nHost: a\r\n\r\n"), 505);
  EXPECT_EQ(judge("GET / http/1.1\r\nHost: a\r\n\r\n"), 400);
  EXPECT_EQ(judge("GET /\r\n"), 400) << "HTTP/0.9 is refused at its first line";
  EXPECT_EQ(judge("get / HTTP/1.1\r\nHost: a\r\n\r\n"), 501);
  EXPECT_EQ(judge("BREW / HTTP/1.1\r\nHost: a\r\n\r\n"), 501);
  EXPECT_EQ(judge("G(T / HTTP/1.1\r\nHost: a\r\n\r\n"), 400);
  EXPECT_EQ(judge("GET  / HTTP/1.1\r\nHost: a\r\n\r\n"), 400);
  EXPECT_EQ(judge("GET x HTTP/1.1\r\nHost: a\r\n\r\n"), 400);
  EXPECT_EQ(judge("GET /\x80 HTTP/1.1\r\nHost: a\r\n\r\n"), 400);
  EXPECT_EQ(judge("POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n"), 400);
  EXPECT_EQ(judge_fields("Expect: 200-ok\r\n"), 417);
  EXPECT_EQ(judge_fields("Content-Encoding: gzip\r\n"), 415);
}

TEST(RequestCheck, LimitsAreFoundAsTheBytesCome) {
  EXPECT_EQ(judge("GET /" + std::string(9000, 'a')), 414);
  EXPECT_EQ(judge("GET / HTTP/1.1\r\nX: " + std::string(9000, 'a')), 431);
  std::string many = "GET / HTTP/1.1\r\nHost: a\r\n";
  for (int i = 0; i < 99; ++i) {
    many += "A:\r\n";
  }
  EXPECT_EQ(judge(many + "\r\n"), 200);
  EXPECT_EQ(judge(many + "A:\r\n\r\n"), 431);
  EXPECT_EQ(judge("GET / HTTP/1.1\r\nHost: a\r\n"), 0);
}

TEST(RequestCheck, TheVerdictDoesNotDependOnHowTheBytesArrive) {
  const std::string text =
      "POST //v1//models/?q HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nabc";
  HeadScanner scanner({});
  std::size_t at = 0;
  HeadScanner::State state = HeadScanner::State::kIncomplete;
  while (state == HeadScanner::State::kIncomplete) {
    state = scanner.scan(text.substr(0, ++at));
  }
  EXPECT_EQ(state, HeadScanner::State::kComplete);
  EXPECT_EQ(scanner.size(), text.size() - 3);
  const Head head = accept(text);
  EXPECT_EQ(head.request.path, "/v1/models");
  EXPECT_EQ(head.request.query, "q");
  EXPECT_EQ(head.content_length, 3U);
}

TEST(RequestCheck, AnAbsoluteTargetIsStrippedAndItsAuthorityCounts) {
  const Head head = accept("GET http://localhost:8080/health HTTP/1.1\r\nHost: evil\r\n\r\n");
  EXPECT_EQ(head.request.path, "/health");
  EXPECT_EQ(head.request.host, "localhost:8080");
  EXPECT_EQ(accept("GET http://a HTTP/1.1\r\nHost: a\r\n\r\n").request.path, "/");
  EXPECT_EQ(judge("GET http:///x HTTP/1.1\r\nHost: a\r\n\r\n"), 400);
  EXPECT_EQ(judge("GET http://u@a/x HTTP/1.1\r\nHost: a\r\n\r\n"), 400);
}

TEST(RequestCheck, KeepAliveFollowsTheVersion) {
  EXPECT_TRUE(accept("GET / HTTP/1.1\r\nHost: a\r\n\r\n").request.keep_alive);
  EXPECT_FALSE(
      accept("GET / HTTP/1.1\r\nHost: a\r\nConnection: x, Close\r\n\r\n").request.keep_alive);
  EXPECT_FALSE(accept("GET / HTTP/1.0\r\n\r\n").request.keep_alive);
  EXPECT_TRUE(accept("GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n").request.keep_alive);
}

}  // namespace
}  // namespace spel::server
