// UTF-8, one character at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace spel {

/// What stands at the start of a byte string.
struct Utf8Character {
  enum class Kind { kValid, kInvalid, kUnfinished } kind = Kind::kValid;
  std::size_t bytes = 0;    ///< Of the character, or of its longest valid beginning (at least 1).
  char32_t code_point = 0;  ///< Of a valid one.
};

/// `bytes` is not empty.
[[nodiscard]] constexpr Utf8Character first_utf8_character(std::string_view bytes) noexcept {
  using Kind = Utf8Character::Kind;
  const auto lead = static_cast<std::uint8_t>(bytes.front());
  if (lead < 0x80) {
    return {Kind::kValid, 1, lead};
  }
  if (lead < 0xC2 || lead > 0xF4) {
    return {Kind::kInvalid, 1, 0};
  }
  const std::size_t more = lead < 0xE0 ? 1U : lead < 0xF0 ? 2U : 3U;
  char32_t code_point = lead & (0x3FU >> more);
  for (std::size_t i = 1; i <= more; ++i) {
    if (i == bytes.size()) {
      return {Kind::kUnfinished, i, 0};
    }
    // The first continuation byte's bounds keep out overlong forms, surrogates and what lies beyond
    // U+10FFFF.
    const bool first = i == 1;
    const std::uint8_t low = first && lead == 0xE0 ? 0xA0 : first && lead == 0xF0 ? 0x90 : 0x80;
    const std::uint8_t high = first && lead == 0xED ? 0x9F : first && lead == 0xF4 ? 0x8F : 0xBF;
    const auto byte = static_cast<std::uint8_t>(bytes[i]);
    if (byte < low || byte > high) {
      return {Kind::kInvalid, i, 0};
    }
    code_point = (code_point << 6U) | (byte & 0x3FU);
  }
  return {Kind::kValid, more + 1, code_point};
}

[[nodiscard]] constexpr bool is_valid_utf8(std::string_view bytes) noexcept {
  while (!bytes.empty()) {
    const Utf8Character character = first_utf8_character(bytes);
    if (character.kind != Utf8Character::Kind::kValid) {
      return false;
    }
    bytes.remove_prefix(character.bytes);
  }
  return true;
}

}  // namespace spel
