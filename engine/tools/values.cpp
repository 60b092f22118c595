#include "engine/tools/values.h"

#include <charconv>
#include <cmath>
#include <cstdlib>

#include "config/base/error.h"

namespace spel::engine::tools {
namespace {

[[noreturn]] void refuse(const std::string& message) {
  throw Error(ErrorCode::kInvalidArgument, message);
}

template <typename Number>
bool reads_as(const std::string& text, Number& value) {
  const char* const last = text.data() + text.size();
  const auto [end, error] = std::from_chars(text.data(), last, value);
  return error == std::errc() && end == last;
}

}  // namespace

std::optional<std::string> variable(const char* name) {
  const char* const text = std::getenv(name);
  return text != nullptr ? std::optional<std::string>(text) : std::nullopt;
}

std::uint64_t parse_between(const std::string& what, const std::string& text, std::uint64_t min,
                            std::uint64_t max) {
  std::uint64_t value = 0;
  if (!reads_as(text, value) || value < min || value > max) {
    refuse(what + " is \"" + text + "\"; expected a whole number from " + std::to_string(min) +
           " to " + std::to_string(max));
  }
  return value;
}

std::uint64_t parse_unsigned(const std::string& what, const std::string& text, std::uint64_t max) {
  return parse_between(what, text, 0, max);
}

double parse_positive(const std::string& what, const std::string& text) {
  double value = 0;
  if (!reads_as(text, value) || !std::isfinite(value) || value <= 0) {
    refuse(what + " is \"" + text + "\"; expected a finite number above 0");
  }
  return value;
}

float parse_from_zero(const std::string& what, const std::string& text) {
  float value = 0.0F;
  if (!reads_as(text, value) || !std::isfinite(value) || value < 0.0F) {
    refuse(what + " is \"" + text + "\"; expected a finite number, 0 or above");
  }
  return value;
}

}  // namespace spel::engine::tools
