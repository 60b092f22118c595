#include "engine/tools/options.h"

#include <charconv>
#include <cmath>

#include "config/base/error.h"

namespace spel::engine::tools {
namespace {

[[noreturn]] void refuse(const std::string& message) {
  throw Error(ErrorCode::kInvalidArgument, message);
}

}  // namespace

Options::Options(std::span<const std::string> args, const OptionNames& names) {
  for (std::size_t i = 0; i < args.size(); ++i) {
    const std::string& arg = args[i];
    if (!arg.starts_with("--")) {
      if (positional_.size() == names.positional_max) {
        refuse("unexpected argument " + arg);
      }
      positional_.push_back(arg);
      continue;
    }
    const std::size_t equals = arg.find('=');
    const std::string name = arg.substr(2, equals == std::string::npos ? equals : equals - 2);
    if (names.flags.contains(name) && equals == std::string::npos) {
      flags_.insert(name);
      continue;
    }
    if (!names.with_value.contains(name)) {
      refuse("unknown option " + arg);
    }
    if (equals == std::string::npos && i + 1 == args.size()) {
      refuse("option --" + name + " needs a value");
    }
    const std::string value = equals == std::string::npos ? args[++i] : arg.substr(equals + 1);
    if (!values_.emplace(name, value).second) {
      refuse("option --" + name + " is given twice");
    }
  }
}

bool Options::has(const std::string& name) const { return flags_.contains(name); }

std::optional<std::string> Options::value(const std::string& name) const {
  const auto at = values_.find(name);
  return at == values_.end() ? std::nullopt : std::optional(at->second);
}

std::uint64_t parse_unsigned(const std::string& what, const std::string& text, std::uint64_t max) {
  return parse_between(what, text, 0, max);
}

std::uint64_t parse_between(const std::string& what, const std::string& text, std::uint64_t min,
                            std::uint64_t max) {
  std::uint64_t value = 0;
  const char* const last = text.data() + text.size();
  const auto [end, error] = std::from_chars(text.data(), last, value);
  if (error != std::errc() || end != last || value < min || value > max) {
    refuse(what + " is \"" + text + "\"; expected a whole number from " + std::to_string(min) +
           " to " + std::to_string(max));
  }
  return value;
}

double parse_positive(const std::string& what, const std::string& text) {
  double value = 0;
  const char* const last = text.data() + text.size();
  const auto [end, error] = std::from_chars(text.data(), last, value);
  if (error != std::errc() || end != last || !std::isfinite(value) || value <= 0) {
    refuse(what + " is \"" + text + "\"; expected a finite number above 0");
  }
  return value;
}

}  // namespace spel::engine::tools
