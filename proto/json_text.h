// Client bytes to JSON, strictly, and JSON to bytes, safely.
#pragma once

#include <cstddef>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

#include "config/base/limits.h"

namespace spel::proto {

/// What a body may cost before it is refused.
struct JsonLimits {
  std::size_t bytes = limits::kBodyBytesDefault;
  std::size_t depth = limits::kJsonDepthDefault;
};

/// The JSON object in `text`. Throws RequestError (400) for anything else: not an object, nested
/// deeper than allowed (found while parsing, before anything recurses), a duplicate key, invalid
/// UTF-8, NaN, comments, text after the end. A leading byte order mark is skipped.
[[nodiscard]] nlohmann::json parse_json_object(std::string_view text, const JsonLimits& limits);

/// Compact text. Invalid UTF-8 becomes U+FFFD and a number that is not finite becomes null.
[[nodiscard]] std::string dump_json(const nlohmann::json& value);
[[nodiscard]] std::string dump_json(const nlohmann::ordered_json& value);

}  // namespace spel::proto
