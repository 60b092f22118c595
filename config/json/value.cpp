#include "config/json/value.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <nlohmann/json.hpp>

namespace spel {

namespace {

template <typename T>
std::unique_ptr<T> copy_of(const std::unique_ptr<T>& original) {
  return std::make_unique<T>(*original);
}

/// What stands in a JSON string as it is, and is not one byte of a longer character.
bool is_plain(char c) {
  const auto byte = static_cast<unsigned char>(c);
  return byte >= 0x20 && byte < 0x7F && c != '"' && c != '\\';
}

void write_library(const nlohmann::json& scalar, std::string& out) {
  out += scalar.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

template <typename Number>
void write_integer(Number number, std::string& out) {
  std::array<char, 24> text{};
  const char* end = std::to_chars(text.data(), text.data() + text.size(), number).ptr;
  out.append(text.data(), static_cast<std::size_t>(end - text.data()));
}

}  // namespace

JsonValue::JsonValue(std::string value) : data_(std::make_unique<std::string>(std::move(value))) {}
JsonValue::JsonValue(std::string_view value) : JsonValue(std::string(value)) {}
JsonValue::JsonValue(const char* value) : JsonValue(std::string(value)) {}

JsonValue::JsonValue(std::initializer_list<JsonItem> items) {
  const bool is_object = std::all_of(items.begin(), items.end(), [](const JsonItem& item) {
    const JsonValue& pair = item.value();
    return pair.is_array() && pair.size() == 2 && pair[0].is_string();
  });
  if (!is_object) {
    auto list = std::make_unique<Array>();
    list->reserve(items.size());
    for (const JsonItem& item : items) {
      list->push_back(item.take());
    }
    data_ = std::move(list);
    return;
  }
  auto members = std::make_unique<Object>();
  members->reserve(items.size());
  for (const JsonItem& item : items) {
    JsonValue pair = item.take();
    Array& parts = *std::get<std::unique_ptr<Array>>(pair.data_);
    members->push_back({std::move(parts[0].text()), std::move(parts[1])});
  }
  data_ = std::move(members);
}

JsonValue JsonValue::array() {
  JsonValue value;
  value.data_ = std::make_unique<Array>();
  return value;
}

JsonValue JsonValue::object() {
  JsonValue value;
  value.data_ = std::make_unique<Object>();
  return value;
}

JsonValue::JsonValue(const JsonValue& other) {
  std::visit(
      [this](const auto& value) {
        using T = std::remove_cvref_t<decltype(value)>;
        if constexpr (std::is_trivially_copyable_v<T>) {
          data_ = value;
        } else {
          data_ = copy_of(value);
        }
      },
      other.data_);
}

JsonValue& JsonValue::operator=(const JsonValue& other) {
  if (this != &other) {
    *this = JsonValue(other);
  }
  return *this;
}

std::size_t JsonValue::size() const noexcept {
  if (const auto* list = std::get_if<std::unique_ptr<Array>>(&data_)) {
    return (*list)->size();
  }
  if (const auto* members = std::get_if<std::unique_ptr<Object>>(&data_)) {
    return (*members)->size();
  }
  return is_null() ? 0 : 1;
}

std::span<const JsonValue> JsonValue::elements() const noexcept {
  const auto* list = std::get_if<std::unique_ptr<Array>>(&data_);
  return list != nullptr ? std::span<const JsonValue>(**list) : std::span<const JsonValue>();
}

JsonValue& JsonValue::push_back(JsonValue value) {
  if (is_null()) {
    data_ = std::make_unique<Array>();
  }
  return std::get<std::unique_ptr<Array>>(data_)->emplace_back(std::move(value));
}

std::span<const JsonValue::Member> JsonValue::items() const noexcept {
  const auto* members = std::get_if<std::unique_ptr<Object>>(&data_);
  return members != nullptr ? std::span<const Member>(**members) : std::span<const Member>();
}

const JsonValue* JsonValue::find(std::string_view name) const noexcept {
  for (const Member& member : items()) {
    if (member.key == name) {
      return &member.value;
    }
  }
  return nullptr;
}

JsonValue& JsonValue::operator[](std::string_view name) {
  if (is_null()) {
    data_ = std::make_unique<Object>();
  }
  for (Member& member : *std::get<std::unique_ptr<Object>>(data_)) {
    if (member.key == name) {
      return member.value;
    }
  }
  return add_member(std::string(name), nullptr);
}

JsonValue& JsonValue::add_member(std::string name, JsonValue value) {
  auto& members = *std::get<std::unique_ptr<Object>>(data_);
  members.push_back({std::move(name), std::move(value)});
  return members.back().value;
}

bool operator==(const JsonValue& a, const JsonValue& b) {
  if (a.is_number() && b.is_number()) {
    const bool exact = a.type() == b.type() && !a.is_number_float();
    return exact ? a.data_ == b.data_ : a.get<double>() == b.get<double>();
  }
  if (a.type() != b.type() || a.size() != b.size()) {
    return false;
  }
  switch (a.type()) {
    case JsonValue::Kind::kString:
      return a.text() == b.text();
    case JsonValue::Kind::kArray:
      return std::equal(a.begin(), a.end(), b.begin());
    case JsonValue::Kind::kObject:
      return std::all_of(a.items().begin(), a.items().end(), [&](const JsonValue::Member& member) {
        const JsonValue* other = b.find(member.key);
        return other != nullptr && member.value == *other;
      });
    default:
      return a.data_ == b.data_;
  }
}

void write_json_string(std::string_view text, std::string& out) {
  out += '"';
  write_json_escaped(text, out);
  out += '"';
}

void write_json_escaped(std::string_view text, std::string& out) {
  if (std::all_of(text.begin(), text.end(), is_plain)) {
    out += text;
    return;
  }
  std::string quoted;
  write_library(nlohmann::json(std::string(text)), quoted);
  out.append(quoted, 1, quoted.size() - 2);
}

void write_json(const JsonValue& value, std::string& out) {
  switch (value.type()) {
    case JsonValue::Kind::kNull:
      out += "null";
      break;
    case JsonValue::Kind::kBoolean:
      out += value.get<bool>() ? "true" : "false";
      break;
    case JsonValue::Kind::kInteger:
      write_integer(value.get<std::int64_t>(), out);
      break;
    case JsonValue::Kind::kUnsigned:
      write_integer(value.get<std::uint64_t>(), out);
      break;
    case JsonValue::Kind::kFloat:
      write_library(nlohmann::json(value.get<double>()), out);
      break;
    case JsonValue::Kind::kString:
      write_json_string(value.text(), out);
      break;
    case JsonValue::Kind::kArray: {
      char before = '[';
      for (const JsonValue& element : value.elements()) {
        out += before;
        write_json(element, out);
        before = ',';
      }
      out += value.empty() ? "[]" : "]";
      break;
    }
    case JsonValue::Kind::kObject: {
      char before = '{';
      for (const JsonValue::Member& member : value.items()) {
        out += before;
        write_json_string(member.key, out);
        out += ':';
        write_json(member.value, out);
        before = ',';
      }
      out += value.empty() ? "{}" : "}";
      break;
    }
  }
}

std::string dump_json(const JsonValue& value) {
  std::string text;
  write_json(value, text);
  return text;
}

}  // namespace spel
