#include "config/config_file.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>

#include "config/base/error.h"
#include "config/json/reader.h"
#include "config/options.h"

namespace spel::config {

namespace {

constexpr std::size_t kFileBytesMax = 1U << 20;

[[noreturn]] void fail(const std::string& path, const std::string& problem) {
  throw Error(ErrorCode::kInvalidArgument, path + ": " + problem);
}

std::string read_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::string text(kFileBytesMax + 1, '\0');
  if (file) {
    file.read(text.data(), static_cast<std::streamsize>(text.size()));
  }
  if (file.bad() || (file.fail() && !file.eof())) {
    throw Error(ErrorCode::kIo, "cannot read " + path + ": " + std::strerror(errno));
  }
  text.resize(static_cast<std::size_t>(file.gcount()));
  if (text.size() > kFileBytesMax) {
    fail(path, "is larger than " + std::to_string(kFileBytesMax) + " bytes");
  }
  return text;
}

JsonValue parse(const std::string& path, const std::string& text) {
  JsonLimits limits;
  limits.bytes = kFileBytesMax;
  limits.comments = true;
  try {
    JsonValue root = read_json(text, limits);
    if (!root.is_object()) {
      fail(path, "must hold a JSON object");
    }
    return root;
  } catch (const JsonError& error) {
    fail(path, error.what());
  }
}

/// The text form of a file's value, or nothing when its JSON kind is not the option's.
std::optional<std::string> to_text(const Option& option, const JsonValue& value) {
  if (option.is_bare()) {
    const bool is_switch = std::holds_alternative<SwitchOption>(option.kind);
    const bool fits = is_switch ? value.is_boolean() : value.is_number();
    return fits ? std::optional(dump_json(value)) : std::nullopt;
  }
  if (value.is_string()) {
    return value.get<std::string>();
  }
  if (!value.is_array() || !std::holds_alternative<ListOption>(option.kind)) {
    return std::nullopt;
  }
  std::string list;
  for (const auto& part : value) {
    // A comma would make two parts of one.
    if (!part.is_string() || part.text().find(',') != std::string::npos) {
      return std::nullopt;
    }
    list += (list.empty() ? "" : ",") + part.text();
  }
  return list;
}

}  // namespace

std::map<std::string, std::string, std::less<>> read_config_file(const std::string& path) {
  std::map<std::string, std::string, std::less<>> values;
  const JsonValue root = parse(path, read_file(path));
  for (const auto& [key, value] : root.items()) {
    const auto& table = option_table();
    const auto option = std::find_if(table.begin(), table.end(),
                                     [&](const Option& entry) { return entry.key == key; });
    if (option == table.end()) {
      fail(path, "unknown key " + key + "; spel serve --help lists the keys");
    }
    auto text = to_text(*option, value);
    if (!text) {
      fail(path, key + ": " + dump_json(value) + " is not allowed; expected " + option->allowed());
    }
    values.emplace(key, std::move(*text));
  }
  return values;
}

}  // namespace spel::config
