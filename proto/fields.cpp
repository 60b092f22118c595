#include "proto/fields.h"

#include <cmath>
#include <limits>
#include <utility>

#include "proto/error_body.h"

namespace spel::proto {

namespace {

using json = JsonValue;

/// For messages: numbers and booleans as written, the rest by kind, so that no message grows with
/// the request.
std::string describe(const json& value) {
  if (value.is_number_float() && !std::isfinite(value.get<double>())) {
    return "a number that is not finite";
  }
  if (value.is_number() || value.is_boolean()) {
    return dump_json(value);
  }
  if (value.is_null()) {
    return "null";
  }
  if (value.is_string()) {
    return "a string";
  }
  return value.is_array() ? "an array" : "an object";
}

std::string plain_number(double value) { return dump_json(json(value)); }

[[noreturn]] void refuse(const std::string& param, const std::string& allowed, const json& value) {
  throw RequestError(
      invalid_request("\"" + param + "\" must be " + allowed + ", got " + describe(value) + ".",
                      param, "invalid_value"));
}

/// Bytes of a client's name an error repeats.
constexpr std::size_t kNameShownMax = 64;

/// Whole numbers a double holds exactly.
constexpr double kExactIntegerMax = 9007199254740992.0;

std::optional<std::int64_t> whole_number(const json& value) {
  if (value.is_number_unsigned()) {
    const auto number = value.get<std::uint64_t>();
    if (number <= static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max())) {
      return static_cast<std::int64_t>(number);
    }
    return std::nullopt;
  }
  if (value.is_number_integer()) {
    return value.get<std::int64_t>();
  }
  if (value.is_number_float()) {
    const auto number = value.get<double>();
    // Written so that NaN fails it.
    if (std::fabs(number) <= kExactIntegerMax && std::trunc(number) == number) {
      return static_cast<std::int64_t>(number);
    }
  }
  return std::nullopt;
}

}  // namespace

std::int64_t require_integer(const json& value, const std::string& param, std::int64_t min,
                             std::int64_t max) {
  const auto number = whole_number(value);
  if (!number || *number < min || *number > max) {
    refuse(param, "an integer from " + std::to_string(min) + " to " + std::to_string(max), value);
  }
  return *number;
}

double require_number(const json& value, const std::string& param, const NumberRange& range) {
  if (value.is_number()) {
    const auto number = value.get<double>();
    // Written so that NaN fails it.
    const bool above = range.min_open ? number > range.min : number >= range.min;
    if (above && number <= range.max) {
      return number;
    }
  }
  refuse(param,
         std::string("a number ") + (range.min_open ? "greater than " : "from ") +
             plain_number(range.min) + (range.min_open ? " and at most " : " to ") +
             plain_number(range.max),
         value);
}

Fields::Fields(JsonObject& object) : body_(&object) {}

Fields::Fields(const json& object, std::string prefix)
    : object_(&object), prefix_(std::move(prefix)) {}

const json* Fields::find(std::string_view name) {
  asked_.emplace(name);
  const json* value = body_ != nullptr ? find_member(*body_, name) : object_->find(name);
  return value == nullptr || value->is_null() ? nullptr : value;
}

std::optional<std::int64_t> Fields::integer(std::string_view name, std::int64_t min,
                                            std::int64_t max) {
  const json* value = find(name);
  if (value == nullptr) {
    return std::nullopt;
  }
  return require_integer(*value, param(name), min, max);
}

std::optional<std::size_t> Fields::count(std::string_view name, std::size_t min, std::size_t max) {
  const auto number = integer(name, static_cast<std::int64_t>(min), static_cast<std::int64_t>(max));
  return number ? std::optional(static_cast<std::size_t>(*number)) : std::nullopt;
}

std::optional<double> Fields::number(std::string_view name, const NumberRange& range) {
  const json* value = find(name);
  if (value == nullptr) {
    return std::nullopt;
  }
  return require_number(*value, param(name), range);
}

std::optional<bool> Fields::boolean(std::string_view name) {
  const json* value = find(name);
  if (value == nullptr) {
    return std::nullopt;
  }
  if (!value->is_boolean()) {
    refuse(param(name), "true or false", *value);
  }
  return value->get<bool>();
}

std::optional<std::string> Fields::text(std::string_view name, std::size_t bytes_max) {
  const json* value = find(name);
  if (value == nullptr) {
    return std::nullopt;
  }
  if (!value->is_string()) {
    refuse(param(name), "a string", *value);
  }
  const auto& string = value->text();
  if (string.size() > bytes_max) {
    fail(name, "must not be longer than " + std::to_string(bytes_max) + " bytes.", "invalid_value");
  }
  return string;
}

std::optional<Fields> Fields::object(std::string_view name) {
  const json* value = find(name);
  if (value == nullptr) {
    return std::nullopt;
  }
  if (!value->is_object()) {
    refuse(param(name), "an object", *value);
  }
  return Fields(*value, param(name) + ".");
}

std::size_t Fields::unknown() const {
  std::size_t known = 0;
  for (const auto& name : asked_) {
    const bool there = body_ != nullptr ? body_->contains(name) : object_->contains(name);
    known += there ? 1U : 0U;
  }
  return (body_ != nullptr ? body_->size() : object_->size()) - known;
}

void Fields::visit_unasked(const std::function<void(const std::string& name)>& visitor) const {
  const auto visit = [&](const std::string& name) {
    if (!asked_.contains(name)) {
      visitor(name);
    }
  };
  if (body_ != nullptr) {
    for (const auto& [name, place] : body_->members()) {
      visit(name);
    }
    return;
  }
  for (const auto& [name, value] : object_->items()) {
    visit(name);
  }
}

void Fields::ignore(std::initializer_list<std::string_view> names) {
  asked_.insert(names.begin(), names.end());
}

void Fields::refuse_unknown() const {
  visit_unasked([&](const std::string& name) {
    const json* value = body_ != nullptr ? find_member(*body_, name) : object_->find(name);
    if (value->is_null()) {
      return;
    }
    std::string known;
    for (const std::string& each : asked_) {
      known += (known.empty() ? "" : ", ") + each;
    }
    fail(name.substr(0, kNameShownMax),
         "is not a member this server knows; it knows " + known + ".", "unknown_parameter");
  });
}

std::string Fields::param(std::string_view name) const { return prefix_ + std::string(name); }

void Fields::fail(std::string_view name, const std::string& problem, std::string code) const {
  throw RequestError(
      invalid_request("\"" + param(name) + "\" " + problem, param(name), std::move(code)));
}

}  // namespace spel::proto
