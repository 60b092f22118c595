// What Python's strings can do, byte ranges kept. Internal to engine/template.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "engine/template/render.h"
#include "engine/template/value.h"

namespace spel::engine {

enum class LetterCase { kUpper, kLower };

/// Character by character, by Unicode's simple mapping.
[[nodiscard]] MarkedText in_case(const MarkedText& text, LetterCase to);
/// The first character in upper case, the others in lower.
[[nodiscard]] MarkedText capitalized(const MarkedText& text);
/// Each word's first character in upper case, the others in lower. A word begins behind whatever
/// `begins_after` says.
[[nodiscard]] MarkedText titled(const MarkedText& text, bool (*begins_after)(char32_t));
/// Whether no letter stands in the other case, and there is one that has a case.
[[nodiscard]] bool is_in_case(std::string_view text, LetterCase wanted);

[[nodiscard]] bool is_space(char32_t c);
[[nodiscard]] bool is_letter(char32_t c);

enum class Ends { kBoth, kLeft, kRight };
/// Without the characters of `chars` at its ends; without blanks if it is absent.
[[nodiscard]] MarkedText stripped(const MarkedText& text, Ends ends,
                                  const std::optional<std::string_view>& chars);

/// At most `count` times, from the left; all if it is negative.
[[nodiscard]] MarkedText replaced(const MarkedText& text, std::string_view from,
                                  const MarkedText& to, std::int64_t count, TemplateWork& work);

/// By `separator`, or by runs of blanks if it is absent; at most `count` cuts, all if negative.
[[nodiscard]] TemplateValue::List split_text(const MarkedText& text,
                                             const std::optional<std::string_view>& separator,
                                             std::int64_t count, bool from_right,
                                             TemplateWork& work);
[[nodiscard]] TemplateValue::List split_lines(const MarkedText& text, bool keep_ends,
                                              TemplateWork& work);

}  // namespace spel::engine
