// Server-sent event frames.
#pragma once

#include <string>
#include <string_view>

#include "proto/error_body.h"

namespace spel::proto {

/// "data: <json>\n\n". `json` has no line break (dump_json() writes none).
[[nodiscard]] std::string sse_data(std::string_view json);
/// "data: {"error":…}\n\n": the stream ends after it, without [DONE].
[[nodiscard]] std::string sse_error(const ApiError& error);
/// "data: [DONE]\n\n"
[[nodiscard]] std::string_view sse_done() noexcept;
/// ":\n\n": a comment that keeps the connection alive.
[[nodiscard]] std::string_view sse_ping() noexcept;

}  // namespace spel::proto
