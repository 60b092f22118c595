#include "proto/error_body.h"

#include <utility>

#include "config/json/value.h"

namespace spel::proto {

namespace {

ApiError make_error(int status, std::string type, std::string message, std::string param = {},
                    std::string code = {}) {
  ApiError error;
  error.status = status;
  error.type = std::move(type);
  error.message = std::move(message);
  error.param = std::move(param);
  error.code = std::move(code);
  return error;
}

JsonValue text_or_null(const std::string& text) {
  return text.empty() ? JsonValue(nullptr) : JsonValue(text);
}

}  // namespace

RequestError::RequestError(ApiError error)
    : std::runtime_error(error.message), error_(std::move(error)) {}

ApiError invalid_request(std::string message, std::string param, std::string code) {
  return make_error(400, "invalid_request_error", std::move(message), std::move(param),
                    std::move(code));
}

ApiError context_overflow(std::size_t n_prompt_tokens, std::size_t n_ctx) {
  ApiError error = make_error(400, "exceed_context_size_error",
                              // litellm looks for the first words, LangChain for the last one.
                              "This model's maximum context length is " + std::to_string(n_ctx) +
                                  " tokens, one to generate included; the prompt has " +
                                  std::to_string(n_prompt_tokens) + " (context_length_exceeded).",
                              "prompt", "context_length_exceeded");
  error.n_prompt_tokens = n_prompt_tokens;
  error.n_ctx = n_ctx;
  return error;
}

ApiError authentication_error(std::string message) {
  return make_error(401, "authentication_error", std::move(message), {}, "invalid_api_key");
}

ApiError forbidden(std::string message) {
  return make_error(403, "permission_error", std::move(message), {}, "forbidden");
}

ApiError not_found(std::string message, std::string param, std::string code) {
  return make_error(404, "not_found_error", std::move(message), std::move(param), std::move(code));
}

ApiError model_not_found(std::string_view model) {
  return not_found("The model \"" + std::string(model) + "\" does not exist on this server.",
                   "model", "model_not_found");
}

ApiError method_not_allowed(std::string message) {
  return make_error(405, "invalid_request_error", std::move(message), {}, "method_not_allowed");
}

ApiError not_supported(std::string message, std::string param) {
  return make_error(501, "not_supported_error", std::move(message), std::move(param),
                    "not_supported");
}

ApiError unavailable(std::string message, std::string code) {
  ApiError error = make_error(503, "unavailable_error", std::move(message));
  error.code = std::move(code);
  return error;
}

ApiError out_of_memory() {
  return unavailable("the server has not enough memory for this request now; try again later",
                     "out_of_memory");
}

ApiError server_error(std::string message) {
  return make_error(500, "server_error", std::move(message));
}

ApiError http_error(int status, std::string message) {
  return make_error(status, status >= 500 ? "server_error" : "invalid_request_error",
                    std::move(message));
}

std::string error_body(const ApiError& error) {
  JsonValue inner = {{"message", error.message},
                     {"type", error.type},
                     {"param", text_or_null(error.param)},
                     {"code", text_or_null(error.code)}};
  if (error.n_prompt_tokens) {
    inner["n_prompt_tokens"] = *error.n_prompt_tokens;
  }
  if (error.n_ctx) {
    inner["n_ctx"] = *error.n_ctx;
  }
  return dump_json(JsonValue{{"error", std::move(inner)}});
}

}  // namespace spel::proto
