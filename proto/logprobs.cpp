#include "proto/logprobs.h"

#include <array>
#include <charconv>
#include <cmath>
#include <string_view>
#include <utility>

#include "config/json/value.h"
#include "proto/text_assembler.h"

namespace spel::proto {

namespace {

/// The shortest decimal that reads back as the same float: 0.1, not 0.10000000149011612. -inf has
/// no JSON form; OpenAI's floor stands for it.
double shortest(float value) {
  constexpr double kLowest = -9999.0;
  if (!std::isfinite(value)) {
    return kLowest;
  }
  std::array<char, 64> text{};
  const auto end = std::to_chars(text.data(), text.data() + text.size(), value).ptr;
  double number = 0.0;
  std::from_chars(text.data(), end, number);
  return number;
}

JsonValue logprob_json(const std::optional<float>& logprob) {
  return logprob ? JsonValue(shortest(*logprob)) : JsonValue(nullptr);
}

std::string legacy_name(std::string_view bytes) {
  if (is_valid_utf8(bytes)) {
    return std::string(bytes);
  }
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string name = "bytes:";
  for (const char byte : bytes) {
    const auto value = static_cast<unsigned char>(byte);
    name += "\\x";
    name += kDigits[value >> 4U];
    name += kDigits[value & 0xFU];
  }
  return name;
}

JsonValue bytes_json(std::string_view bytes) {
  JsonValue list = JsonValue::array();
  for (const char byte : bytes) {
    list.push_back(static_cast<unsigned char>(byte));
  }
  return list;
}

JsonValue chat_entry(std::string_view bytes, const std::optional<float>& logprob) {
  return {{"token", to_valid_utf8(bytes)},
          {"logprob", logprob_json(logprob)},
          {"bytes", bytes_json(bytes)}};
}

}  // namespace

JsonValue legacy_logprobs_json(const std::vector<TokenReport>& tokens) {
  JsonValue offsets = JsonValue::array();
  JsonValue logprobs = JsonValue::array();
  JsonValue names = JsonValue::array();
  JsonValue tops = JsonValue::array();
  for (const auto& token : tokens) {
    offsets.push_back(token.text_offset);
    logprobs.push_back(logprob_json(token.logprob));
    names.push_back(legacy_name(token.bytes));
    JsonValue top = nullptr;
    if (token.logprob) {
      top = JsonValue::object();
      for (const auto& alternative : token.top) {
        // Two tokens may have the same bytes: the likelier, which comes first, keeps the name.
        std::string name = legacy_name(alternative.bytes);
        if (!top.contains(name)) {
          top.add_member(std::move(name), shortest(alternative.logprob));
        }
      }
    }
    tops.push_back(std::move(top));
  }
  return {{"text_offset", std::move(offsets)},
          {"token_logprobs", std::move(logprobs)},
          {"tokens", std::move(names)},
          {"top_logprobs", std::move(tops)}};
}

JsonValue chat_logprobs_json(const std::vector<TokenReport>& tokens) {
  JsonValue content = JsonValue::array();
  for (const auto& token : tokens) {
    JsonValue entry = chat_entry(token.bytes, token.logprob);
    JsonValue tops = JsonValue::array();
    for (const auto& alternative : token.top) {
      tops.push_back(chat_entry(alternative.bytes, alternative.logprob));
    }
    entry["top_logprobs"] = std::move(tops);
    content.push_back(std::move(entry));
  }
  return {{"content", std::move(content)}, {"refusal", nullptr}};
}

}  // namespace spel::proto
