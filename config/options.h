// The one table of `spel serve`'s settings: flags, variables, file keys, help and the README's
// table all come from it.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "config/server_config.h"

namespace spel::config {

// How a setting is read, and what it may be.
struct TextOption {
  std::string ServerConfig::* member;
  std::size_t bytes_max = 4096;
  bool required = false;  ///< Not empty.
  bool utf8 = false;      ///< Clients see it.
};
struct ChoiceOption {
  std::string ServerConfig::* member;
  std::vector<std::string_view> allowed;
};
struct ListOption {
  std::vector<std::string> ServerConfig::* member;
  /// Empty for an element that is fine; otherwise what to write instead.
  std::string (*advice)(std::string_view element) = nullptr;
};
struct CountOption {
  std::size_t ServerConfig::* member;
  std::size_t min;
  std::size_t max;
};
struct PortOption {
  std::uint16_t ServerConfig::* member;
};
struct RatioOption {
  double ServerConfig::* member;
  double min;
  double max;
};
struct SecondsOption {
  std::chrono::milliseconds ServerConfig::* member;
  double max;
  double min = 0.001;  ///< No deadline is ever off.
};
struct SwitchOption {
  bool ServerConfig::* member;
};

using OptionKind = std::variant<TextOption, ChoiceOption, ListOption, CountOption, PortOption,
                                RatioOption, SecondsOption, SwitchOption>;

struct Option {
  std::string_view key;  ///< In the file; "body_bytes" is --body-bytes and SPEL_BODY_BYTES.
  OptionKind kind;
  std::string_view help;
  std::string_view other_variable = {};  ///< A second name in the environment.

  [[nodiscard]] std::string flag() const;
  [[nodiscard]] std::string variable() const;
  /// "an integer from 1 to 64"
  [[nodiscard]] std::string allowed() const;
  /// Numbers and truth values are written bare in JSON, the rest as strings or arrays.
  [[nodiscard]] bool is_bare() const;
};

[[nodiscard]] const std::vector<Option>& option_table();

/// Sets the option from its text form. `origin` ("--port", "SPEL_PORT", "file.json") goes into the
/// Error(kInvalidArgument) of a value that is not allowed.
void set_option(ServerConfig& config, const Option& option, std::string_view text,
                std::string_view origin);
/// The text form: set_option() with it changes nothing.
[[nodiscard]] std::string option_text(const ServerConfig& config, const Option& option);
/// The same as JSON.
[[nodiscard]] std::string option_json(const ServerConfig& config, const Option& option);

}  // namespace spel::config
