// Numbers and lists from their text form, all or nothing.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace spel::config {

/// Decimal digits only: no sign, space or suffix.
[[nodiscard]] std::optional<std::uint64_t> parse_count(std::string_view text);
/// A finite decimal number.
[[nodiscard]] std::optional<double> parse_number(std::string_view text);
[[nodiscard]] std::optional<bool> parse_switch(std::string_view text);
/// The shortest text that reads back as `value`.
[[nodiscard]] std::string number_text(double value);

/// Parts between separators, surrounding spaces taken off. Empty text: no parts.
[[nodiscard]] std::vector<std::string> split(std::string_view text, char separator);

}  // namespace spel::config
