// Reading and writing one option's value, for each kind.
#include <algorithm>
#include <cmath>
#include <string>

#include "config/base/error.h"
#include "config/base/utf8.h"
#include "config/json/value.h"
#include "config/options.h"
#include "config/text_values.h"

namespace spel::config {

namespace {

constexpr double kMsPerSecond = 1000.0;

template <typename... Visitors>
struct Overloaded : Visitors... {
  using Visitors::operator()...;
};

std::string range_text(const std::string& noun, const std::string& min, const std::string& max) {
  return noun + " from " + min + " to " + max;
}

bool has_control_characters(std::string_view text) {
  return std::any_of(text.begin(), text.end(), [](char c) {
    const auto byte = static_cast<unsigned char>(c);
    return byte < 0x20 || byte == 0x7F;
  });
}

/// Each overload says whether `text` was allowed, and sets the member if so.
class Setter {
 public:
  Setter(ServerConfig& config, std::string_view text) : config_(config), text_(text) {}

  bool operator()(const TextOption& option) const {
    if (text_.size() > option.bytes_max || has_control_characters(text_) ||
        (option.required && text_.empty()) || (option.utf8 && !is_valid_utf8(text_))) {
      return false;
    }
    config_.*option.member = text_;
    return true;
  }

  bool operator()(const ChoiceOption& option) const {
    if (std::find(option.allowed.begin(), option.allowed.end(), text_) == option.allowed.end()) {
      return false;
    }
    config_.*option.member = text_;
    return true;
  }

  bool operator()(const ListOption& option) const {
    auto parts = split(text_, ',');
    for (const auto& part : parts) {
      if (part.empty() || has_control_characters(part) ||
          (option.advice != nullptr && !option.advice(part).empty())) {
        return false;
      }
    }
    config_.*option.member = std::move(parts);
    return true;
  }

  bool operator()(const CountOption& option) const {
    const auto value = parse_count(text_);
    if (!value || *value < option.min || *value > option.max) {
      return false;
    }
    config_.*option.member = static_cast<std::size_t>(*value);
    return true;
  }

  bool operator()(const PortOption& option) const {
    const auto value = parse_count(text_);
    if (!value || *value > 65535) {
      return false;
    }
    config_.*option.member = static_cast<std::uint16_t>(*value);
    return true;
  }

  bool operator()(const RatioOption& option) const {
    const auto value = parse_number(text_);
    if (!value || *value < option.min || *value > option.max) {
      return false;
    }
    config_.*option.member = *value;
    return true;
  }

  bool operator()(const SecondsOption& option) const {
    const auto value = parse_number(text_);
    if (!value || *value < option.min || *value > option.max) {
      return false;
    }
    config_.*option.member =
        std::chrono::milliseconds(static_cast<std::int64_t>(std::llround(*value * kMsPerSecond)));
    return true;
  }

  bool operator()(const SwitchOption& option) const {
    const auto value = parse_switch(text_);
    if (!value) {
      return false;
    }
    config_.*option.member = *value;
    return true;
  }

 private:
  ServerConfig& config_;
  std::string_view text_;
};

}  // namespace

std::string Option::allowed() const {
  return std::visit(
      Overloaded{
          [](const TextOption& option) {
            return std::string(option.required ? "a non-empty text" : "a text") + " of at most " +
                   std::to_string(option.bytes_max) + " bytes, without control characters" +
                   (option.utf8 ? ", in UTF-8" : "");
          },
          [](const ChoiceOption& option) {
            std::string list;
            for (const auto name : option.allowed) {
              list += (list.empty() ? "" : ", ") + std::string(name);
            }
            return "one of " + list;
          },
          [](const ListOption&) { return std::string("a list, separated by commas"); },
          [](const CountOption& option) {
            return range_text("an integer", std::to_string(option.min), std::to_string(option.max));
          },
          [](const PortOption&) { return range_text("an integer", "0", "65535"); },
          [](const RatioOption& option) {
            return range_text("a number", number_text(option.min), number_text(option.max));
          },
          [](const SecondsOption& option) {
            return range_text("seconds", number_text(option.min), number_text(option.max));
          },
          [](const SwitchOption&) { return std::string("true or false"); },
      },
      kind);
}

bool Option::is_bare() const {
  return std::holds_alternative<CountOption>(kind) || std::holds_alternative<PortOption>(kind) ||
         std::holds_alternative<RatioOption>(kind) || std::holds_alternative<SecondsOption>(kind) ||
         std::holds_alternative<SwitchOption>(kind);
}

namespace {

/// What to write instead of the first element that is not allowed, where there is such advice.
std::string advice_for(const Option& option, std::string_view text) {
  const auto* list = std::get_if<ListOption>(&option.kind);
  if (list == nullptr || list->advice == nullptr) {
    return {};
  }
  for (const std::string& part : split(text, ',')) {
    if (const std::string advice = list->advice(part); !advice.empty()) {
      return "; " + advice;
    }
  }
  return {};
}

}  // namespace

void set_option(ServerConfig& config, const Option& option, std::string_view text,
                std::string_view origin) {
  if (!std::visit(Setter(config, text), option.kind)) {
    throw Error(ErrorCode::kInvalidArgument, std::string(option.key) + ": \"" + std::string(text) +
                                                 "\" (from " + std::string(origin) +
                                                 ") is not allowed; expected " + option.allowed() +
                                                 advice_for(option, text));
  }
}

std::string option_text(const ServerConfig& config, const Option& option) {
  return std::visit(
      Overloaded{
          [&](const TextOption& kind) { return config.*kind.member; },
          [&](const ChoiceOption& kind) { return config.*kind.member; },
          [&](const ListOption& kind) {
            std::string list;
            for (const auto& part : config.*kind.member) {
              list += (list.empty() ? "" : ",") + part;
            }
            return list;
          },
          [&](const CountOption& kind) { return std::to_string(config.*kind.member); },
          [&](const PortOption& kind) { return std::to_string(config.*kind.member); },
          [&](const RatioOption& kind) { return number_text(config.*kind.member); },
          [&](const SecondsOption& kind) {
            return number_text(static_cast<double>((config.*kind.member).count()) / kMsPerSecond);
          },
          [&](const SwitchOption& kind) {
            return std::string(config.*kind.member ? "true" : "false");
          },
      },
      option.kind);
}

std::string option_json(const ServerConfig& config, const Option& option) {
  std::string text = option_text(config, option);
  if (option.is_bare()) {
    return text;
  }
  const auto* list = std::get_if<ListOption>(&option.kind);
  return dump_json(list != nullptr ? JsonValue(config.*list->member) : JsonValue(text));
}

}  // namespace spel::config
