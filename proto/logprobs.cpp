#include "proto/logprobs.h"

#include <array>
#include <charconv>
#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>
#include <utility>

#include "proto/text_assembler.h"

namespace spel::proto {

namespace {

using nlohmann::ordered_json;

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

ordered_json logprob_json(const std::optional<float>& logprob) {
  return logprob ? ordered_json(shortest(*logprob)) : ordered_json(nullptr);
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

ordered_json bytes_json(std::string_view bytes) {
  ordered_json list = ordered_json::array();
  for (const char byte : bytes) {
    list.push_back(static_cast<unsigned char>(byte));
  }
  return list;
}

ordered_json chat_entry(std::string_view bytes, const std::optional<float>& logprob) {
  return {{"token", to_valid_utf8(bytes)},
          {"logprob", logprob_json(logprob)},
          {"bytes", bytes_json(bytes)}};
}

}  // namespace

ordered_json legacy_logprobs_json(const std::vector<TokenReport>& tokens) {
  ordered_json offsets = ordered_json::array();
  ordered_json logprobs = ordered_json::array();
  ordered_json names = ordered_json::array();
  ordered_json tops = ordered_json::array();
  for (const auto& token : tokens) {
    offsets.push_back(token.text_offset);
    logprobs.push_back(logprob_json(token.logprob));
    names.push_back(legacy_name(token.bytes));
    ordered_json top = nullptr;
    if (token.logprob) {
      top = ordered_json::object();
      for (const auto& alternative : token.top) {
        // Two tokens may have the same bytes: the likelier, which comes first, keeps the name.
        top.emplace(legacy_name(alternative.bytes), shortest(alternative.logprob));
      }
    }
    tops.push_back(std::move(top));
  }
  return {{"text_offset", std::move(offsets)},
          {"token_logprobs", std::move(logprobs)},
          {"tokens", std::move(names)},
          {"top_logprobs", std::move(tops)}};
}

ordered_json chat_logprobs_json(const std::vector<TokenReport>& tokens) {
  ordered_json content = ordered_json::array();
  for (const auto& token : tokens) {
    ordered_json entry = chat_entry(token.bytes, token.logprob);
    ordered_json tops = ordered_json::array();
    for (const auto& alternative : token.top) {
      tops.push_back(chat_entry(alternative.bytes, alternative.logprob));
    }
    entry["top_logprobs"] = std::move(tops);
    content.push_back(std::move(entry));
  }
  return {{"content", std::move(content)}, {"refusal", nullptr}};
}

}  // namespace spel::proto
