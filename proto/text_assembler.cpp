#include "proto/text_assembler.h"

#include <algorithm>

namespace spel::proto {

namespace {

constexpr std::string_view kReplacement = "\xEF\xBF\xBD";

}  // namespace

TextAssembler::Piece TextAssembler::push(std::string_view token_bytes, std::size_t held_bytes) {
  last_token_offset_ = code_points_;
  partial_ += token_bytes;
  std::string_view rest = partial_;
  while (!rest.empty()) {
    const Utf8Character character = first_utf8_character(rest);
    if (character.kind == Utf8Character::Kind::kUnfinished) {
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
    const Utf8Character character = first_utf8_character(rest);
    if (character.kind == Utf8Character::Kind::kUnfinished && !at_end) {
      break;
    }
    text += character.kind == Utf8Character::Kind::kValid ? rest.substr(0, character.bytes)
                                                          : kReplacement;
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
    const Utf8Character character = first_utf8_character(bytes);
    text += character.kind == Utf8Character::Kind::kValid ? bytes.substr(0, character.bytes)
                                                          : kReplacement;
    bytes.remove_prefix(character.bytes);
  }
  return text;
}

std::size_t count_code_points(std::string_view text) noexcept {
  return static_cast<std::size_t>(std::count_if(text.begin(), text.end(), [](char byte) {
    return (static_cast<unsigned char>(byte) & 0xC0U) != 0x80U;
  }));
}

}  // namespace spel::proto
