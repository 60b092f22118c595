#include "proto/sse.h"

namespace spel::proto {

std::string sse_data(std::string_view json) {
  constexpr std::string_view kField = "data: ";
  constexpr std::string_view kEnd = "\n\n";
  std::string frame;
  frame.reserve(kField.size() + json.size() + kEnd.size());
  return frame.append(kField).append(json).append(kEnd);
}

std::string sse_error(const ApiError& error) { return sse_data(error_body(error)); }

std::string_view sse_done() noexcept { return "data: [DONE]\n\n"; }

std::string_view sse_ping() noexcept { return ":\n\n"; }

}  // namespace spel::proto
