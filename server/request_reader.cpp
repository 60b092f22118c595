#include "server/request_reader.h"

#include <algorithm>
#include <boost/beast/http/parser.hpp>
#include <utility>

#include "server/growing_body.h"

namespace spel::server {
namespace {

namespace http = boost::beast::http;

/// Empty lines before a request, which old clients send after a body, are skipped: this many bytes.
constexpr std::size_t kLeadingBlankMax = 8;

/// For the parser of bodies, the framing alone: the client's own header has been read, once, and
/// nothing in it can mean two things.
std::string framing_head(const Head& head) {
  return "POST / HTTP/1.1\r\n" +
         (head.chunked ? "Transfer-Encoding: chunked"
                       : "Content-Length: " + std::to_string(head.content_length.value())) +
         "\r\n\r\n";
}

}  // namespace

proto::ApiError body_too_large(std::size_t limit) {
  return proto::http_error(413, "the body is larger than " + std::to_string(limit) + " bytes");
}

RequestReader::Outcome RequestReader::refuse(proto::ApiError error) {
  refusal_ = std::move(error);
  return Outcome::kRefused;
}

Task<RequestReader::Outcome> RequestReader::more(Clock::time_point deadline) {
  const Connection::Fill fill = co_await connection_.fill(deadline);
  if (fill == Connection::Fill::kData) {
    co_return Outcome::kOk;
  }
  // A connection on which nothing came is closed without a word: a client may be about to use it
  // and would take the answer for that of its next request.
  if (fill == Connection::Fill::kTimedOut && !idle_) {
    co_return refuse(proto::http_error(408, "the request came too slowly"));
  }
  co_return Outcome::kClosed;
}

Task<RequestReader::Outcome> RequestReader::read_head(Clock::time_point first_byte_by) {
  idle_ = true;
  head_ = {};  // A refusal must not be shaped by the request before.
  std::size_t blank = 0;
  while (true) {
    while (connection_.pending().starts_with("\r\n") && blank < kLeadingBlankMax) {
      connection_.consume(2);
      blank += 2;
    }
    if (!connection_.pending().empty() && connection_.pending() != "\r") {
      break;
    }
    const Outcome outcome = co_await more(first_byte_by);
    if (outcome != Outcome::kOk) {
      co_return outcome;
    }
  }
  idle_ = false;

  const Clock::time_point deadline = Clock::now() + config_.header_timeout;
  HeadScanner scanner({config_.header_bytes, config_.header_fields});
  while (true) {
    const HeadScanner::State state = scanner.scan(connection_.pending());
    if (state == HeadScanner::State::kRefused) {
      co_return refuse(scanner.refusal());
    }
    if (state == HeadScanner::State::kComplete) {
      break;
    }
    const Outcome outcome = co_await more(deadline);
    if (outcome != Outcome::kOk) {
      co_return outcome;
    }
  }
  auto checked = check_head(connection_.pending().substr(0, scanner.size()));
  connection_.consume(scanner.size());
  if (auto* error = std::get_if<proto::ApiError>(&checked)) {
    co_return refuse(std::move(*error));
  }
  head_ = std::move(std::get<Head>(checked));
  co_return Outcome::kOk;
}

Task<RequestReader::Outcome> RequestReader::read_body(std::size_t limit, Body& body) {
  if (!head_.has_body()) {
    co_return Outcome::kOk;
  }
  // A route of its own limit may spend as much again on framing.
  const std::size_t wire_limit =
      limit > config_.body_bytes ? std::max(config_.wire_bytes, 2 * limit) : config_.wire_bytes;
  http::request_parser<GrowingBody> parser;
  parser.header_limit(static_cast<std::uint32_t>(config_.header_bytes));
  parser.body_limit(limit);
  IoError error;
  (void)parser.put(net::buffer(framing_head(head_)), error);
  if (error) {
    co_return refuse(proto::http_error(400, "the body's framing is malformed"));
  }
  parser.eager(true);
  const Clock::time_point deadline = Clock::now() + config_.body_timeout;
  std::size_t wire = 0;
  while (!parser.is_done()) {
    const std::string_view pending = connection_.pending();
    std::size_t used = 0;
    if (!pending.empty()) {
      // No more of the body can be in it than there is.
      if (!body.charge.hold(parser.get().body().bytes_with(pending.size()))) {
        co_return refuse(proto::unavailable("too many large requests at once"));
      }
      error = {};
      used = parser.put(net::buffer(pending.data(), pending.size()), error);
      connection_.consume(used);
      wire += used;
    }
    if (error == http::error::body_limit) {
      co_return refuse(body_too_large(limit));
    }
    if (error && error != http::error::need_more) {
      co_return refuse(proto::http_error(400, "the body's framing is malformed"));
    }
    if (wire > wire_limit) {
      co_return refuse(proto::http_error(413, "the body's framing is larger than allowed"));
    }
    if (parser.is_done()) {
      break;
    }
    if (used == 0 || connection_.pending().empty()) {
      if (connection_.full()) {
        co_return refuse(proto::http_error(400, "a chunk header is too long"));
      }
      const Outcome outcome = co_await more(deadline);
      if (outcome != Outcome::kOk) {
        co_return outcome;
      }
    }
  }
  body.text = std::move(parser.get().body().text);
  co_return Outcome::kOk;
}

}  // namespace spel::server
