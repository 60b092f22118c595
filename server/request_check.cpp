#include "server/request_check.h"

#include <algorithm>
#include <charconv>
#include <utility>

namespace spel::server {
namespace {

using boost::beast::iequals;
using proto::ApiError;
using proto::http_error;

bool is_token_char(char c) {
  constexpr std::string_view kSymbols = "!#$%&'*+-.^_`|~";
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
         kSymbols.find(c) != std::string_view::npos;
}

bool is_token(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), is_token_char);
}

std::string_view trim(std::string_view text) {
  const auto blank = [](char c) { return c == ' ' || c == '\t'; };
  while (!text.empty() && blank(text.front())) {
    text.remove_prefix(1);
  }
  while (!text.empty() && blank(text.back())) {
    text.remove_suffix(1);
  }
  return text;
}

bool same(std::string_view a, std::string_view b) { return iequals(a, b); }

struct StartLine {
  std::string_view method;
  std::string_view target;
  unsigned version = 0;
};

/// The line without its CRLF.
std::variant<StartLine, ApiError> parse_start_line(std::string_view line) {
  const std::size_t first = line.find(' ');
  const std::size_t second = first == std::string_view::npos ? first : line.find(' ', first + 1);
  if (second == std::string_view::npos || line.find(' ', second + 1) != std::string_view::npos) {
    return http_error(400, "the request line must be: method, target, version");
  }
  StartLine result;
  result.method = line.substr(0, first);
  result.target = line.substr(first + 1, second - first - 1);
  const std::string_view version = line.substr(second + 1);
  if (version == "HTTP/1.1") {
    result.version = 11;
  } else if (version == "HTTP/1.0") {
    result.version = 10;
  } else if (version.starts_with("HTTP/")) {
    return http_error(505, "only HTTP/1.1 and HTTP/1.0 are spoken here");
  } else {
    return http_error(400, "the request line must end with the HTTP version");
  }
  if (!is_token(result.method)) {
    return http_error(400, "the method is not a token");
  }
  const auto visible = [](char c) { return c > 0x20 && c < 0x7f; };
  if (result.target.empty() || !std::all_of(result.target.begin(), result.target.end(), visible)) {
    return http_error(400, "the request target has characters that must be percent-encoded");
  }
  return result;
}

/// Splits the target into path and query; an absolute target's authority goes to `authority`.
std::optional<ApiError> parse_target(std::string_view target, Request& request,
                                     std::string& authority) {
  for (const std::string_view scheme : {"http://", "https://"}) {
    if (target.size() >= scheme.size() && same(target.substr(0, scheme.size()), scheme)) {
      target.remove_prefix(scheme.size());
      const std::size_t slash = std::min(target.find_first_of("/?"), target.size());
      authority = target.substr(0, slash);
      target.remove_prefix(slash);
      if (authority.empty() || authority.find('@') != std::string::npos) {
        return http_error(400, "the request target has no usable authority");
      }
      break;
    }
  }
  const std::size_t mark = std::min(target.find('?'), target.size());
  std::string_view path = target.substr(0, mark);
  if (path.empty() && !authority.empty()) {
    path = "/";
  }
  const bool asterisk = path == "*" && request.method == Verb::options;
  if (!path.starts_with('/') && !asterisk) {
    return http_error(400, "the request target must begin with /");
  }
  request.path = normalize_path(path);
  request.query = mark < target.size() ? target.substr(mark + 1) : std::string_view();
  return std::nullopt;
}

/// Fields that may come once at most, and those that steer framing.
struct Fields {
  std::size_t hosts = 0;
  std::size_t lengths = 0;
  std::size_t codings = 0;
  std::size_t authorizations = 0;
  bool close = false;
  bool keep_alive = false;
};

void read_connection(std::string_view value, Fields& fields) {
  while (!value.empty()) {
    const std::size_t comma = std::min(value.find(','), value.size());
    const std::string_view option = trim(value.substr(0, comma));
    fields.close = fields.close || same(option, "close");
    fields.keep_alive = fields.keep_alive || same(option, "keep-alive");
    value.remove_prefix(std::min(comma + 1, value.size()));
  }
}

std::optional<ApiError> read_field(std::string_view name, std::string_view value, Head& head,
                                   Fields& fields) {
  if (same(name, "Host")) {
    ++fields.hosts;
    head.request.host = value;
  } else if (same(name, "Content-Length")) {
    ++fields.lengths;
    std::uint64_t length = 0;
    const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), length);
    if (value.empty() || error != std::errc() || end != value.data() + value.size()) {
      return http_error(400, "Content-Length must be one number");
    }
    head.content_length = length;
  } else if (same(name, "Transfer-Encoding")) {
    ++fields.codings;
    if (!same(value, "chunked")) {
      return http_error(501, "the only transfer coding understood is chunked");
    }
    head.chunked = true;
  } else if (same(name, "Content-Encoding")) {
    if (!same(value, "identity")) {
      return http_error(415, "compressed bodies are not accepted");
    }
  } else if (same(name, "Connection")) {
    read_connection(value, fields);
  } else if (same(name, "Expect")) {
    if (!same(value, "100-continue")) {
      return http_error(417, "the only expectation understood is 100-continue");
    }
    head.expects_continue = true;
  } else if (same(name, "Authorization")) {
    ++fields.authorizations;
    head.request.authorization = value;
  } else if (same(name, "Origin")) {
    head.request.origin = value;
  } else if (same(name, "Access-Control-Request-Method")) {
    head.request.requested_method = value;
  } else if (same(name, "Access-Control-Request-Headers")) {
    head.request.requested_fields = value;
  } else if (same(name, "X-Request-Id")) {
    head.request.id = value;
  }
  return std::nullopt;
}

std::optional<ApiError> check_fields(const Fields& fields, Head& head) {
  Request& request = head.request;
  if (fields.hosts > 1 || (fields.hosts == 0 && request.version == 11)) {
    return http_error(400, "exactly one Host field is needed");
  }
  if (fields.lengths > 1) {
    return http_error(400, "more than one Content-Length");
  }
  if (fields.codings > 1) {
    return http_error(501, "the only transfer coding understood is chunked");
  }
  if (head.chunked && head.content_length) {
    return http_error(400, "Content-Length and Transfer-Encoding exclude each other");
  }
  if (head.chunked && request.version < 11) {
    return http_error(400, "HTTP/1.0 has no chunked transfer coding");
  }
  if (fields.authorizations > 1) {
    return http_error(400, "more than one Authorization");
  }
  if (request.version < 11) {
    head.expects_continue = false;
    request.keep_alive = fields.keep_alive && !fields.close;
  } else {
    request.keep_alive = !fields.close;
  }
  return std::nullopt;
}

}  // namespace

HeadScanner::State HeadScanner::refuse(int status, std::string message) {
  refusal_ = http_error(status, std::move(message));
  return State::kRefused;
}

HeadScanner::State HeadScanner::scan(std::string_view bytes) {
  for (; at_ < bytes.size(); ++at_) {
    if (at_ >= limits_.bytes) {
      return lines_ == 0 ? refuse(414, "the request line is too long")
                         : refuse(431, "the header is too large");
    }
    const char c = bytes[at_];
    if (c == '\r') {
      if (at_ + 1 == bytes.size()) {
        return State::kIncomplete;
      }
      if (bytes[at_ + 1] != '\n') {
        return refuse(400, "a carriage return alone in the header");
      }
      continue;
    }
    if (c == '\n') {
      if (at_ == 0 || bytes[at_ - 1] != '\r') {
        return refuse(400, "a line feed alone in the header");
      }
      const std::string_view line = bytes.substr(line_start_, at_ - 1 - line_start_);
      if (lines_ == 0) {
        auto start = parse_start_line(line);
        if (auto* error = std::get_if<ApiError>(&start)) {
          refusal_ = std::move(*error);
          return State::kRefused;
        }
      } else if (line.empty()) {
        ++at_;
        return State::kComplete;
      } else if (lines_ > limits_.fields) {
        return refuse(431, "too many header fields");
      }
      ++lines_;
      line_start_ = at_ + 1;
      continue;
    }
    const auto value = static_cast<unsigned char>(c);
    if ((value < 0x20 && c != '\t') || value == 0x7f) {
      return refuse(400, "a control character in the header");
    }
    if (at_ == line_start_ && lines_ > 0 && (c == ' ' || c == '\t')) {
      return refuse(400, "folded header lines are not accepted");
    }
  }
  return State::kIncomplete;
}

std::variant<Head, ApiError> check_head(std::string_view head_bytes) {
  const std::size_t line_end = head_bytes.find("\r\n");
  auto start = parse_start_line(head_bytes.substr(0, line_end));
  if (auto* error = std::get_if<ApiError>(&start)) {
    return std::move(*error);
  }
  const auto& line = std::get<StartLine>(start);
  Head head;
  Request& request = head.request;
  request.version = line.version;
  request.method = boost::beast::http::string_to_verb(line.method);
  if (request.method == Verb::unknown) {
    return http_error(501, "unknown method");
  }
  std::string authority;
  if (auto error = parse_target(line.target, request, authority)) {
    return std::move(*error);
  }
  if (request.method == Verb::head) {
    request.method = Verb::get;
    request.head_only = true;
  }

  Fields fields;
  head_bytes.remove_prefix(line_end + 2);
  while (!head_bytes.starts_with("\r\n")) {
    const std::size_t end = head_bytes.find("\r\n");
    const std::string_view field = head_bytes.substr(0, end);
    const std::size_t colon = field.find(':');
    if (colon == std::string_view::npos || !is_token(field.substr(0, colon))) {
      return http_error(400, "a header line is not \"name: value\"");
    }
    if (auto error =
            read_field(field.substr(0, colon), trim(field.substr(colon + 1)), head, fields)) {
      return std::move(*error);
    }
    head_bytes.remove_prefix(end + 2);
  }
  if (auto error = check_fields(fields, head)) {
    return std::move(*error);
  }
  if (!authority.empty()) {
    request.host = std::move(authority);
  }
  return head;
}

std::string normalize_path(std::string_view path) {
  std::string result;
  result.reserve(path.size());
  for (const char c : path) {
    if (c != '/' || result.empty() || result.back() != '/') {
      result.push_back(c);
    }
  }
  if (result.size() > 1 && result.back() == '/') {
    result.pop_back();
  }
  return result;
}

}  // namespace spel::server
