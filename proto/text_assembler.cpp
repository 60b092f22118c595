#include "proto/text_assembler.h"

#include <algorithm>
#include <cstdint>

namespace spel::proto {

namespace {

constexpr std::string_view kReplacement = "\xEF\xBF\xBD";

/// What stands at the start of a byte string.
struct Character {
  enum class Kind { kValid, kInvalid, kUnfinished } kind = Kind::kValid;
  std::size_t bytes = 0;  ///< Of the character, or of its longest valid beginning (at least 1).
};

/// Continuation bytes a lead byte asks for, and the bounds of the first of them: these keep out
/// overlong forms, surrogates and what lies beyond U+10FFFF.
struct Lead {
  std::size_t more = 0;
  std::uint8_t low = 0x80;
  std::uint8_t high = 0xBF;
  bool valid = true;
};

Lead classify(std::uint8_t byte) {
  if (byte < 0x80) {
    return {};
  }
  if (byte >= 0xC2 && byte <= 0xDF) {
    return {.more = 1};
  }
  if (byte >= 0xE0 && byte <= 0xEF) {
    return {.more = 2,
            .low = byte == 0xE0 ? std::uint8_t{0xA0} : std::uint8_t{0x80},
            .high = byte == 0xED ? std::uint8_t{0x9F} : std::uint8_t{0xBF}};
  }
  if (byte >= 0xF0 && byte <= 0xF4) {
    return {.more = 3,
            .low = byte == 0xF0 ? std::uint8_t{0x90} : std::uint8_t{0x80},
            .high = byte == 0xF4 ? std::uint8_t{0x8F} : std::uint8_t{0xBF}};
  }
  return {.valid = false};
}

/// `bytes` is not empty.
Character first_character(std::string_view bytes) {
  const Lead lead = classify(static_cast<std::uint8_t>(bytes.front()));
  if (!lead.valid) {
    return {Character::Kind::kInvalid, 1};
  }
  for (std::size_t i = 1; i <= lead.more; ++i) {
    if (i == bytes.size()) {
      return {Character::Kind::kUnfinished, i};
    }
    const auto byte = static_cast<std::uint8_t>(bytes[i]);
    const std::uint8_t low = i == 1 ? lead.low : std::uint8_t{0x80};
    const std::uint8_t high = i == 1 ? lead.high : std::uint8_t{0xBF};
    if (byte < low || byte > high) {
      return {Character::Kind::kInvalid, i};
    }
  }
  return {Character::Kind::kValid, lead.more + 1};
}

}  // namespace

TextAssembler::Piece TextAssembler::push(std::string_view token_bytes, std::size_t held_bytes) {
  last_token_offset_ = code_points_;
  partial_ += token_bytes;
  std::string_view rest = partial_;
  while (!rest.empty()) {
    const Character character = first_character(rest);
    if (character.kind == Character::Kind::kUnfinished) {
      break;
    }
    rest.remove_prefix(character.bytes);
    ++code_points_;
  }
  partial_.erase(0, partial_.size() - rest.size());

  starts_.push_back(total_);
  total_ += token_bytes.size();
  pending_ += token_bytes;
  Piece piece;
  piece.text = take(total_ - std::min(held_bytes, total_), false);
  while (!starts_.empty() && starts_.front() < shown_) {
    starts_.pop_front();
    ++piece.tokens;
  }
  return piece;
}

TextAssembler::Piece TextAssembler::finish(std::size_t text_bytes) {
  const bool cut = text_bytes < total_;
  Piece piece;
  piece.text = take(std::min(text_bytes, total_), true);
  while (!starts_.empty() && (!cut || starts_.front() < text_bytes)) {
    starts_.pop_front();
    ++piece.tokens;
  }
  return piece;
}

std::string TextAssembler::take(std::size_t limit, bool at_end) {
  std::string text;
  if (limit <= shown_) {
    return text;
  }
  const std::string_view window = std::string_view(pending_).substr(0, limit - shown_);
  std::string_view rest = window;
  while (!rest.empty()) {
    const Character character = first_character(rest);
    if (character.kind == Character::Kind::kUnfinished && !at_end) {
      break;
    }
    text +=
        character.kind == Character::Kind::kValid ? rest.substr(0, character.bytes) : kReplacement;
    rest.remove_prefix(character.bytes);
  }
  const std::size_t taken = window.size() - rest.size();
  pending_.erase(0, taken);
  shown_ += taken;
  return text;
}

std::string to_valid_utf8(std::string_view bytes) {
  std::string text;
  text.reserve(bytes.size());
  while (!bytes.empty()) {
    const Character character = first_character(bytes);
    text +=
        character.kind == Character::Kind::kValid ? bytes.substr(0, character.bytes) : kReplacement;
    bytes.remove_prefix(character.bytes);
  }
  return text;
}

bool is_valid_utf8(std::string_view bytes) noexcept {
  while (!bytes.empty()) {
    const Character character = first_character(bytes);
    if (character.kind != Character::Kind::kValid) {
      return false;
    }
    bytes.remove_prefix(character.bytes);
  }
  return true;
}

std::size_t count_code_points(std::string_view text) noexcept {
  return static_cast<std::size_t>(std::count_if(text.begin(), text.end(), [](char byte) {
    return (static_cast<unsigned char>(byte) & 0xC0U) != 0x80U;
  }));
}

}  // namespace spel::proto
