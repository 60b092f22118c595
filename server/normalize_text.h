// Typographic characters to ASCII, for models that read nothing else.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace spel::server {

/// What stands for a character in ASCII: curly quotes, dashes, the ellipsis, special blanks,
/// ligatures, accents alone, and accented Latin letters, which lose their accents. May be empty.
/// Nothing for ASCII itself and for all others: a wrong letter is worse than a refusal.
[[nodiscard]] std::optional<std::string_view> ascii_for(char32_t character);

/// Replaces in place what ascii_for() knows, in one pass; returns how many characters. `text` may
/// hold anything; what is not valid UTF-8 stays.
std::size_t normalize_text(std::string& text);

}  // namespace spel::server
