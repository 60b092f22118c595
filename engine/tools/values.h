// The words of command lines and variables as values. Each throws Error(kInvalidArgument) naming
// `what`, the word, and what is allowed.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace spel::engine::tools {

/// The value of a variable; none if it is not set.
[[nodiscard]] std::optional<std::string> variable(const char* name);

/// A whole decimal number in [min, max].
[[nodiscard]] std::uint64_t parse_between(const std::string& what, const std::string& text,
                                          std::uint64_t min, std::uint64_t max);
/// The same in [0, max].
[[nodiscard]] std::uint64_t parse_unsigned(const std::string& what, const std::string& text,
                                           std::uint64_t max);
/// A finite number above 0.
[[nodiscard]] double parse_positive(const std::string& what, const std::string& text);
/// A finite number, 0 or above.
[[nodiscard]] float parse_from_zero(const std::string& what, const std::string& text);

}  // namespace spel::engine::tools
