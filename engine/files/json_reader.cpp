#include "engine/files/json_reader.h"

#include <charconv>
#include <cmath>
#include <utility>

#include "config/base/error.h"

namespace spel::engine {
namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }

void append_utf8(std::string& out, std::uint32_t code) {
  const auto byte = [&out](std::uint32_t value) { out.push_back(static_cast<char>(value)); };
  if (code < 0x80) {
    byte(code);
  } else if (code < 0x800) {
    byte(0xC0 | (code >> 6));
    byte(0x80 | (code & 0x3F));
  } else if (code < 0x10000) {
    byte(0xE0 | (code >> 12));
    byte(0x80 | ((code >> 6) & 0x3F));
    byte(0x80 | (code & 0x3F));
  } else {
    byte(0xF0 | (code >> 18));
    byte(0x80 | ((code >> 12) & 0x3F));
    byte(0x80 | ((code >> 6) & 0x3F));
    byte(0x80 | (code & 0x3F));
  }
}

}  // namespace

JsonReader::JsonReader(std::string_view text, std::string source)
    : text_(text), source_(std::move(source)) {}

void JsonReader::fail(const std::string& expected) const {
  std::string found = "the end";
  if (at_ < text_.size()) {
    const auto byte = static_cast<unsigned char>(text_[at_]);
    found = byte >= 0x20 && byte < 0x7F ? "'" + std::string(1, text_[at_]) + "'"
                                        : "byte " + std::to_string(byte);
  }
  throw Error(ErrorCode::kCorrupt, source_ + ": at byte " + std::to_string(at_) + " expected " +
                                       expected + ", found " + found);
}

void JsonReader::skip_space() {
  while (at_ < text_.size() &&
         (text_[at_] == ' ' || text_[at_] == '\t' || text_[at_] == '\n' || text_[at_] == '\r')) {
    ++at_;
  }
}

JsonReader::Kind JsonReader::peek() {
  skip_space();
  switch (current()) {
    case '{':
      return Kind::kObject;
    case '[':
      return Kind::kArray;
    case '"':
      return Kind::kString;
    case 't':
    case 'f':
      return Kind::kBool;
    case 'n':
      return Kind::kNull;
    default:
      if (current() == '-' || is_digit(current())) {
        return Kind::kNumber;
      }
      fail("a JSON value");
  }
}

void JsonReader::enter(bool is_object) {
  skip_space();
  if (current() != (is_object ? '{' : '[')) {
    fail(is_object ? "an object" : "an array");
  }
  if (levels_.size() >= kDepthMax) {
    fail("nesting no deeper than " + std::to_string(kDepthMax));
  }
  ++at_;
  levels_.push_back(Level{is_object, true, {}});
}

void JsonReader::enter_object() { enter(true); }
void JsonReader::enter_array() { enter(false); }

bool JsonReader::next_in_level(char close) {
  Level& level = levels_.back();
  skip_space();
  if (current() == close) {
    ++at_;
    live_keys_ -= level.keys.size();
    levels_.pop_back();
    return false;
  }
  if (!level.is_empty) {
    if (current() != ',') {
      fail(std::string("',' or '") + close + "'");
    }
    ++at_;
    skip_space();
  }
  level.is_empty = false;
  return true;
}

bool JsonReader::next_key(std::string& key) {
  if (!next_in_level('}')) {
    return false;
  }
  key = read_string();
  if (++live_keys_ > kLiveKeysMax) {
    fail("at most " + std::to_string(kLiveKeysMax) + " keys");
  }
  if (!levels_.back().keys.insert(key).second) {
    fail("each key once, but " + json_quoted(key) + " is repeated");
  }
  skip_space();
  if (current() != ':') {
    fail("':'");
  }
  ++at_;
  return true;
}

bool JsonReader::next_element() { return next_in_level(']'); }

std::uint32_t JsonReader::read_hex4() {
  std::uint32_t value = 0;
  for (int i = 0; i < 4; ++i) {
    const char c = current();
    std::uint32_t digit = 0;
    if (is_digit(c)) {
      digit = static_cast<std::uint32_t>(c - '0');
    } else if (c >= 'a' && c <= 'f') {
      digit = static_cast<std::uint32_t>(c - 'a') + 10;
    } else if (c >= 'A' && c <= 'F') {
      digit = static_cast<std::uint32_t>(c - 'A') + 10;
    } else {
      fail("four hexadecimal digits");
    }
    value = value * 16 + digit;
    ++at_;
  }
  return value;
}

void JsonReader::read_escape(std::string& out) {
  static constexpr std::string_view kNames = "\"\\/bfnrt";
  static constexpr std::string_view kValues = "\"\\/\b\f\n\r\t";
  const char c = current();
  if (c == 'u') {
    ++at_;
    std::uint32_t code = read_hex4();
    if (code >= 0xD800 && code < 0xDC00) {
      if (text_.substr(at_, 2) != "\\u") {
        fail("the second half of a surrogate pair");
      }
      at_ += 2;
      const std::uint32_t low = read_hex4();
      if (low < 0xDC00 || low > 0xDFFF) {
        fail("the second half of a surrogate pair before this");
      }
      code = 0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00);
    } else if (code >= 0xDC00 && code < 0xE000) {
      fail("no lone surrogate before this");
    }
    append_utf8(out, code);
    return;
  }
  const std::size_t index = c == '\0' ? std::string_view::npos : kNames.find(c);
  if (index == std::string_view::npos) {
    fail("an escape sequence");
  }
  out.push_back(kValues[index]);
  ++at_;
}

void JsonReader::read_utf8(std::string& out) {
  const auto lead = static_cast<unsigned char>(text_[at_]);
  std::size_t length = 0;
  std::uint32_t code = 0;
  std::uint32_t lowest = 0;  // A smaller code in this many bytes is an overlong form.
  if (lead >= 0xC2 && lead < 0xE0) {
    length = 2, code = lead & 0x1FU, lowest = 0x80;
  } else if (lead >= 0xE0 && lead < 0xF0) {
    length = 3, code = lead & 0x0FU, lowest = 0x800;
  } else if (lead >= 0xF0 && lead < 0xF5) {
    length = 4, code = lead & 0x07U, lowest = 0x10000;
  } else {
    fail("valid UTF-8");
  }
  if (length > text_.size() - at_) {
    fail("valid UTF-8");
  }
  for (std::size_t i = 1; i < length; ++i) {
    const auto next = static_cast<unsigned char>(text_[at_ + i]);
    if ((next & 0xC0U) != 0x80U) {
      fail("valid UTF-8");
    }
    code = (code << 6) | (next & 0x3FU);
  }
  if (code < lowest || code > 0x10FFFF || (code >= 0xD800 && code < 0xE000)) {
    fail("valid UTF-8");
  }
  out.append(text_, at_, length);
  at_ += length;
}

std::string JsonReader::read_string() {
  skip_space();
  if (current() != '"') {
    fail("a string");
  }
  ++at_;
  std::string out;
  while (at_ < text_.size()) {
    const auto byte = static_cast<unsigned char>(text_[at_]);
    if (byte == '"') {
      ++at_;
      return out;
    }
    if (byte == '\\') {
      ++at_;
      read_escape(out);
    } else if (byte < 0x20) {
      fail("no control character in a string");
    } else if (byte < 0x80) {
      out.push_back(text_[at_]);
      ++at_;
    } else {
      read_utf8(out);
    }
  }
  fail("'\"' to close the string");
}

std::string_view JsonReader::read_number_token() {
  skip_space();
  const std::size_t start = at_;
  const auto digits = [this] {
    if (!is_digit(current())) {
      fail("a digit");
    }
    while (is_digit(current())) {
      ++at_;
    }
  };
  if (current() == '-') {
    ++at_;
  } else if (!is_digit(current())) {
    fail("a number");
  }
  if (current() == '0') {
    ++at_;
    if (is_digit(current())) {
      fail("no leading zero in a number");
    }
  } else {
    digits();
  }
  if (current() == '.') {
    ++at_;
    digits();
  }
  if (current() == 'e' || current() == 'E') {
    ++at_;
    if (current() == '+' || current() == '-') {
      ++at_;
    }
    digits();
  }
  return text_.substr(start, at_ - start);
}

std::uint64_t JsonReader::read_unsigned(std::uint64_t max) {
  skip_space();
  const std::size_t start = at_;
  const std::string_view token = read_number_token();
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(token.data(), token.data() + token.size(), value);
  if (error != std::errc() || end != token.data() + token.size() || value > max) {
    at_ = start;
    fail("a whole number from 0 to " + std::to_string(max));
  }
  return value;
}

double JsonReader::read_double() {
  skip_space();
  const std::size_t start = at_;
  const std::string_view token = read_number_token();
  double value = 0;
  const auto [end, error] = std::from_chars(token.data(), token.data() + token.size(), value);
  if (error != std::errc() || end != token.data() + token.size() || !std::isfinite(value)) {
    at_ = start;
    fail("a number a double can hold");
  }
  return value;
}

void JsonReader::read_word(std::string_view word) {
  if (text_.substr(at_, word.size()) != word) {
    fail(std::string(word));
  }
  at_ += word.size();
}

bool JsonReader::read_bool() {
  skip_space();
  if (current() == 't') {
    read_word("true");
    return true;
  }
  if (current() == 'f') {
    read_word("false");
    return false;
  }
  fail("true or false");
}

void JsonReader::read_null() {
  skip_space();
  read_word("null");
}

void JsonReader::skip_value() {
  // Recursion is bounded: enter() refuses the level past kDepthMax.
  std::string key;
  switch (peek()) {
    case Kind::kObject:
      enter_object();
      while (next_key(key)) {
        skip_value();
      }
      break;
    case Kind::kArray:
      enter_array();
      while (next_element()) {
        skip_value();
      }
      break;
    case Kind::kString:
      (void)read_string();
      break;
    case Kind::kNumber:
      (void)read_number_token();
      break;
    case Kind::kBool:
      (void)read_bool();
      break;
    case Kind::kNull:
      read_null();
      break;
  }
}

void JsonReader::finish() {
  skip_space();
  if (at_ != text_.size()) {
    fail("nothing after the value");
  }
}

std::string json_quoted(std::string_view text) {
  static constexpr char kHex[] = "0123456789abcdef";
  std::string out = "\"";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte == '"' || byte == '\\') {
      out.push_back('\\');
      out.push_back(c);
    } else if (byte < 0x20 || byte == 0x7F) {
      out += "\\u00";
      out.push_back(kHex[byte >> 4]);
      out.push_back(kHex[byte & 0xF]);
    } else {
      out.push_back(c);
    }
  }
  out.push_back('"');
  return out;
}

}  // namespace spel::engine
