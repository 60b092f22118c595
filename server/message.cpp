#include "server/message.h"

#include <algorithm>
#include <boost/beast/http/status.hpp>

#include "config/base/error.h"
#include "server/constants.h"

namespace spel::server {
namespace {

void append_field(std::string& out, std::string_view name, std::string_view value) {
  out.append(name).append(": ").append(value).append("\r\n");
}

bool has_body(int status) { return status >= 200 && status != 204 && status != 304; }

}  // namespace

void Response::add_header(std::string name, std::string value) {
  const auto breaks_line = [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; };
  if (std::any_of(name.begin(), name.end(), breaks_line) ||
      std::any_of(value.begin(), value.end(), breaks_line)) {
    throw Error(ErrorCode::kInternal, "control character in response field " + name);
  }
  headers_.emplace_back(std::move(name), std::move(value));
}

Response json_response(std::string body) { return {200, "application/json", std::move(body)}; }

Response error_response(const proto::ApiError& error) {
  Response response(error.status, "application/json", proto::error_body(error));
  if (error.status == 503) {
    response.add_header("Retry-After",
                        std::to_string(error.retry_after_seconds.value_or(kRetryAfterSeconds)));
  } else if (error.status == 401) {
    response.add_header("WWW-Authenticate", "Bearer");
  }
  return response;
}

std::string serialize_head(const Response& response, const HeadOptions& options) {
  std::string out;
  out.reserve(256);
  const auto status = static_cast<unsigned>(response.status());
  const std::string_view reason =
      boost::beast::http::obsolete_reason(boost::beast::http::int_to_status(status));
  out.append("HTTP/1.1 ").append(std::to_string(status)).append(" ").append(reason).append("\r\n");
  append_field(out, "Server", "spel");
  if (!options.date.empty()) {
    append_field(out, "Date", options.date);
  }
  if (!options.request_id.empty()) {
    append_field(out, "X-Request-Id", options.request_id);
  }
  append_field(out, "X-Content-Type-Options", "nosniff");
  for (const auto& [name, value] : response.headers()) {
    append_field(out, name, value);
  }
  if (!options.keep_alive) {
    append_field(out, "Connection", "close");
  } else if (options.version < 11) {
    append_field(out, "Connection", "keep-alive");
  }
  if (has_body(response.status())) {
    append_field(out, "Content-Type", response.content_type());
    if (options.framing == Framing::kLength) {
      append_field(out, "Content-Length", std::to_string(response.body().size()));
    } else if (options.framing == Framing::kChunked) {
      append_field(out, "Transfer-Encoding", "chunked");
    }
  }
  out.append("\r\n");
  return out;
}

}  // namespace spel::server
