#include "config/json/file_values.h"

namespace spel {

namespace {

/// Bytes of a text a message repeats.
constexpr std::size_t kTextShownMax = 96;

/// What was found, so short that no message grows with the file.
std::string shown(const JsonValue& value) {
  if (value.is_string()) {
    return shown_text(value.text());
  }
  if (value.is_structured()) {
    return value.is_array() ? "an array" : "an object";
  }
  return dump_json(value);
}

[[noreturn]] void refuse_file(const std::string& source, const JsonError& error) {
  std::string message = source + ": ";
  if (error.fault() == JsonError::Fault::kSyntax) {
    message += "at byte " + std::to_string(error.position) + ": ";
  }
  message += error.what();
  if (error.fault() == JsonError::Fault::kSyntax && !error.key.empty()) {
    message += " (key " + shown_text(error.key) + ")";
  }
  throw Error(ErrorCode::kCorrupt, message);
}

}  // namespace

std::string shown_text(std::string_view text) {
  const bool whole = text.size() <= kTextShownMax;
  std::string out;
  write_json_string(whole ? text : text.substr(0, kTextShownMax), out);
  return whole ? out : out + "...";
}

void refuse_value(const JsonValue& found, const std::string& where, const std::string& expected) {
  throw Error(ErrorCode::kCorrupt, where + " is " + shown(found) + "; expected " + expected);
}

JsonObject read_file_object(std::string_view text, const std::string& source,
                            const JsonLimits& limits) {
  if (text.starts_with("\xEF\xBB\xBF")) {
    throw Error(ErrorCode::kCorrupt,
                source + ": begins with a byte order mark; expected a JSON object");
  }
  try {
    return {text, limits};
  } catch (const JsonError& error) {
    refuse_file(source, error);
  }
}

JsonValue file_member(const JsonObject& object, std::string_view name, const std::string& source) {
  try {
    if (std::optional<JsonValue> value = object.build(name)) {
      return *std::move(value);
    }
  } catch (const JsonError& error) {
    refuse_file(source, error);
  }
  throw Error(ErrorCode::kCorrupt, source + ": " + std::string(name) + " is missing");
}

std::uint64_t whole_number(const JsonValue& value, const std::string& where, std::uint64_t max) {
  if (!value.is_number_unsigned() || value.get<std::uint64_t>() > max) {
    refuse_value(value, where, "a whole number from 0 to " + std::to_string(max));
  }
  return value.get<std::uint64_t>();
}

double real_number(const JsonValue& value, const std::string& where) {
  if (!value.is_number()) {
    refuse_value(value, where, "a number");
  }
  return value.get<double>();
}

bool true_or_false(const JsonValue& value, const std::string& where) {
  if (!value.is_boolean()) {
    refuse_value(value, where, "true or false");
  }
  return value.get<bool>();
}

const std::string& text_of(const JsonValue& value, const std::string& where) {
  if (!value.is_string()) {
    refuse_value(value, where, "a string");
  }
  return value.text();
}

std::span<const JsonValue> elements_of(const JsonValue& value, const std::string& where,
                                       std::size_t max) {
  if (!value.is_array()) {
    refuse_value(value, where, "an array");
  }
  if (value.size() > max) {
    throw Error(ErrorCode::kCorrupt, where + " has " + std::to_string(value.size()) +
                                         " elements; expected at most " + std::to_string(max));
  }
  return value.elements();
}

std::span<const JsonValue::Member> members_of(const JsonValue& value, const std::string& where) {
  if (!value.is_object()) {
    refuse_value(value, where, "an object");
  }
  return value.items();
}

}  // namespace spel
