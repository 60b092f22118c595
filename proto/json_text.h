// Client bytes to JSON, strictly, and JSON to bytes, safely.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "config/json/reader.h"
#include "config/json/value.h"

namespace spel::proto {

using spel::JsonLimits;
using spel::JsonObject;
using spel::JsonValue;

/// The most that is written of a long answer at once, an escape, a token or a choice apart: what is
/// held of it while its client reads.
inline constexpr std::size_t kAnswerPartBytes = 32 * 1024;

/// The JSON object in `text`, of which members are built as they are asked for; `text` must outlive
/// it. Throws RequestError (400) for anything else: not an object, over a limit (found while
/// reading, before anything is built), a duplicate key, invalid UTF-8, NaN, comments, text after
/// the end; 413 for a text over limits.bytes.
[[nodiscard]] JsonObject parse_json_object(std::string_view text, const JsonLimits& limits);

/// The member, or nullptr. Throws RequestError (400) where it has too many parts.
[[nodiscard]] JsonValue* find_member(JsonObject& object, std::string_view name);

/// Compact text. Invalid UTF-8 becomes U+FFFD and a number that is not finite becomes null.
using spel::dump_json;

}  // namespace spel::proto
