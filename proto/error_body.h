// The one shape every refusal has on the wire, and the exception that carries it there.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>

namespace spel::proto {

/// `message` is shown to the client: no file path, no internal detail.
struct ApiError {
  int status = 400;  ///< HTTP status.
  std::string message;
  std::string type = "invalid_request_error";
  std::string param;  ///< The field at fault, dotted ("speculation.k"); empty: null.
  std::string code;   ///< Machine-readable reason; empty: null.
  std::optional<std::uint32_t> retry_after_seconds;  ///< Of a 503: what is known of it.
  std::optional<std::size_t> n_prompt_tokens;        ///< Set together, for a context overflow.
  std::optional<std::size_t> n_ctx;
};

/// Thrown by every parser of this module: what the client sent is wrong, and how.
class RequestError : public std::runtime_error {
 public:
  explicit RequestError(ApiError error);

  [[nodiscard]] const ApiError& error() const noexcept { return error_; }

 private:
  ApiError error_;
};

[[nodiscard]] ApiError invalid_request(std::string message, std::string param = {},
                                       std::string code = {});
/// 400: the prompt does not fit. Both counts are in the body.
[[nodiscard]] ApiError context_overflow(std::size_t n_prompt_tokens, std::size_t n_ctx);
[[nodiscard]] ApiError authentication_error(std::string message);  ///< 401
[[nodiscard]] ApiError forbidden(std::string message);             ///< 403
/// 404. Never without a code: clients take a 404 that has none for a missing model.
[[nodiscard]] ApiError not_found(std::string message, std::string param = {},
                                 std::string code = "not_found");
[[nodiscard]] ApiError model_not_found(std::string_view model);  ///< 404, code model_not_found
[[nodiscard]] ApiError method_not_allowed(std::string message);  ///< 405
[[nodiscard]] ApiError not_supported(std::string message, std::string param = {});  ///< 501
[[nodiscard]] ApiError unavailable(std::string message, std::string code = {});     ///< 503
/// 503, code out_of_memory: for this request, now.
[[nodiscard]] ApiError out_of_memory();
[[nodiscard]] ApiError server_error(std::string message);  ///< 500
/// For statuses without a function of their own (408, 413, 414, 431, 505, …).
[[nodiscard]] ApiError http_error(int status, std::string message);

/// {"error":{"message","type","param","code"}}; always valid UTF-8, never throws for bad text.
[[nodiscard]] std::string error_body(const ApiError& error);

}  // namespace spel::proto
