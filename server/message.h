// A request as handlers see it, and the answer they give.
#pragma once

#include <chrono>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "proto/error_body.h"
#include "server/beast.h"

namespace spel::server {

/// Already checked: framing, Host, length. Everything taken from the header before the body was
/// read, so that trailers cannot change it.
struct Request {
  Verb method = Verb::get;  ///< HEAD appears as GET; see `head_only`.
  bool head_only = false;   ///< Answer without the body.
  std::string path;         ///< Origin form, "//" collapsed, no trailing "/", not decoded.
  std::string query;        ///< After '?'.
  std::vector<std::string> parameters;  ///< What the route's {…} segments matched, in order.
  unsigned version = 11;                ///< 10 or 11.
  bool keep_alive = true;
  std::string id;                ///< For the log and X-Request-Id; safe characters only.
  std::string host;              ///< Host field or the authority of an absolute target.
  std::string origin;            ///< Origin field.
  std::string authorization;     ///< Authorization field.
  std::string requested_method;  ///< Access-Control-Request-Method field.
  std::string requested_fields;  ///< Access-Control-Request-Headers field.
  std::chrono::steady_clock::time_point arrived;  ///< When its header had been read.
};

/// Name and value of a field of an answer.
using HeaderField = std::pair<std::string, std::string>;

class Response {
 public:
  Response() = default;
  Response(int status, std::string content_type, std::string body)
      : status_(status), content_type_(std::move(content_type)), body_(std::move(body)) {}
  /// An answer whose body is not copied: it outlives every connection. A thousand clients that do
  /// not read would otherwise hold a thousand copies of the page.
  [[nodiscard]] static Response with_fixed_body(int status, std::string content_type,
                                                std::string_view body) {
    Response response(status, std::move(content_type), {});
    response.fixed_body_ = body;
    return response;
  }

  /// The only way to add a field: throws Error(kInternal) if the value could end the line, since
  /// Beast and we write values as they are.
  void add_header(std::string name, std::string value);

  [[nodiscard]] int status() const noexcept { return status_; }
  [[nodiscard]] const std::string& content_type() const noexcept { return content_type_; }
  [[nodiscard]] std::string_view body() const noexcept {
    return fixed_body_.data() != nullptr ? fixed_body_ : std::string_view(body_);
  }
  [[nodiscard]] const std::vector<HeaderField>& headers() const noexcept { return headers_; }

 private:
  int status_ = 200;
  std::string content_type_ = "application/json";
  std::string body_;
  std::string_view fixed_body_;
  std::vector<HeaderField> headers_;
};

[[nodiscard]] Response json_response(std::string body);
/// The JSON error body with its status, Retry-After for 503, WWW-Authenticate for 401.
[[nodiscard]] Response error_response(const proto::ApiError& error);

/// How the end of a body is told.
enum class Framing { kLength, kChunked, kUntilClose };

struct HeadOptions {
  unsigned version = 11;
  bool keep_alive = true;
  Framing framing = Framing::kLength;
  std::string_view date;        ///< Empty: left out.
  std::string_view request_id;  ///< Empty: left out.
};

/// Status line and fields, up to and including the empty line.
[[nodiscard]] std::string serialize_head(const Response& response, const HeadOptions& options);

}  // namespace spel::server
