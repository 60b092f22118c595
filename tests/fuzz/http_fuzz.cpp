// Request headers: the verdict does not depend on how the bytes arrive, what is accepted keeps the
// documented rules, and where Beast's parser accepts it too, both frame the body alike.
#include <boost/beast/http/empty_body.hpp>
#include <boost/beast/http/parser.hpp>
#include <cstdint>
#include <string>
#include <string_view>

#include "server/request_check.h"
#include "tests/fuzz/require.h"

namespace {

namespace http = boost::beast::http;
using spel::fuzz::require;
using spel::server::Head;
using spel::server::HeadLimits;
using spel::server::HeadScanner;

constexpr HeadLimits kLimits{.bytes = 512, .fields = 8};

void check_accepted(const Head& head) {
  const spel::server::Request& request = head.request;
  require(!(head.chunked && head.content_length), "one framing");
  require(request.version == 10 || request.version == 11, "version");
  require(request.version == 11 || !head.chunked, "no chunks in HTTP/1.0");
  require(!request.path.empty(), "a path");
  require(request.path.find("//") == std::string::npos, "collapsed");
  require(request.path == "/" || request.path.back() != '/', "no slash at the end");
  require(request.path.front() == '/' || request.path == "*", "rooted");
  for (const std::string* text : {&request.path, &request.query}) {
    for (const char c : *text) {
      require(c > 0x20 && c < 0x7f, "visible characters");
    }
  }
}

void compare_with_beast(std::string_view bytes, const Head& head) {
  http::request_parser<http::empty_body> parser;
  boost::system::error_code error;
  parser.body_limit(boost::none);
  (void)parser.put(boost::asio::buffer(bytes.data(), bytes.size()), error);
  if (error || !parser.is_header_done()) {
    return;
  }
  require(parser.chunked() == head.chunked, "chunked");
  const bool has_length = parser.content_length().has_value();
  require(has_length == head.content_length.has_value(), "has a length");
  require(!has_length || *parser.content_length() == *head.content_length, "the length");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  HeadScanner whole(kLimits);
  const HeadScanner::State state = whole.scan(bytes);
  HeadScanner piecemeal(kLimits);
  HeadScanner::State last = HeadScanner::State::kIncomplete;
  for (std::size_t end = 1; end <= size && last == HeadScanner::State::kIncomplete; ++end) {
    last = piecemeal.scan(bytes.substr(0, end));
  }
  require(state == last, "the verdict does not depend on how the bytes arrive");
  if (state == HeadScanner::State::kRefused) {
    require(whole.refusal().status == piecemeal.refusal().status, "nor does the status");
    require(whole.refusal().status >= 400, "a refusal");
  }
  if (state != HeadScanner::State::kComplete) {
    return 0;
  }
  require(whole.size() == piecemeal.size() && whole.size() <= kLimits.bytes, "the size");
  const std::string_view head_bytes = bytes.substr(0, whole.size());
  const auto checked = spel::server::check_head(head_bytes);
  if (const auto* head = std::get_if<Head>(&checked)) {
    check_accepted(*head);
    compare_with_beast(head_bytes, *head);
  } else {
    require(std::get<spel::proto::ApiError>(checked).status >= 400, "a refusal");
  }
  return 0;
}
