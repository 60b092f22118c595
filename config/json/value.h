// One JSON value, as a tree that cannot end the program.
//
// The JSON library's own tree allocates while it is destroyed, so that running out of memory there
// terminates the process. This one frees and nothing else.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

namespace spel {

class JsonItem;
class JsonValue;

/// A whole number; a character is not one.
template <typename T>
concept JsonInteger = std::integral<T> && !std::same_as<T, bool> && !std::same_as<T, char>;

/// 16 bytes, and what it holds. Objects keep their members in the order they came, and look them up
/// one by one: they are small, or limited by the reader. Destroying goes as deep as the value is
/// nested, which the reader limits too. What asks a value for another kind throws
/// std::bad_variant_access.
class JsonValue {
 public:
  struct Member;
  using Array = std::vector<JsonValue>;
  using Object = std::vector<Member>;
  enum class Kind { kNull, kBoolean, kInteger, kUnsigned, kFloat, kString, kArray, kObject };

  JsonValue() noexcept = default;
  JsonValue(std::nullptr_t) noexcept {}  // NOLINT(google-explicit-constructor): as in JSON.
  template <std::same_as<bool> Boolean>
  JsonValue(Boolean value) noexcept : data_(value) {}  // NOLINT(google-explicit-constructor)
  template <JsonInteger Number>
  JsonValue(Number value) noexcept  // NOLINT(google-explicit-constructor)
      : data_(
            static_cast<std::conditional_t<std::is_signed_v<Number>, std::int64_t, std::uint64_t>>(
                value)) {}
  JsonValue(double value) noexcept : data_(value) {}  // NOLINT(google-explicit-constructor)
  JsonValue(std::string value);                       // NOLINT(google-explicit-constructor)
  JsonValue(std::string_view value);                  // NOLINT(google-explicit-constructor)
  JsonValue(const char* value);                       // NOLINT(google-explicit-constructor)
  template <typename Element>
  JsonValue(const std::vector<Element>& values);  // NOLINT(google-explicit-constructor)
  /// An object, if every item is an array of a string and a value; otherwise an array.
  JsonValue(std::initializer_list<JsonItem> items);
  [[nodiscard]] static JsonValue array();
  [[nodiscard]] static JsonValue object();

  JsonValue(const JsonValue& other);
  JsonValue(JsonValue&& other) noexcept;
  JsonValue& operator=(const JsonValue& other);
  JsonValue& operator=(JsonValue&& other) noexcept;
  ~JsonValue();

  [[nodiscard]] Kind type() const noexcept { return static_cast<Kind>(data_.index()); }
  [[nodiscard]] bool is_null() const noexcept { return type() == Kind::kNull; }
  [[nodiscard]] bool is_boolean() const noexcept { return type() == Kind::kBoolean; }
  [[nodiscard]] bool is_number_unsigned() const noexcept { return type() == Kind::kUnsigned; }
  [[nodiscard]] bool is_number_integer() const noexcept {
    return type() == Kind::kInteger || is_number_unsigned();
  }
  [[nodiscard]] bool is_number_float() const noexcept { return type() == Kind::kFloat; }
  [[nodiscard]] bool is_number() const noexcept { return is_number_integer() || is_number_float(); }
  [[nodiscard]] bool is_string() const noexcept { return type() == Kind::kString; }
  [[nodiscard]] bool is_array() const noexcept { return type() == Kind::kArray; }
  [[nodiscard]] bool is_object() const noexcept { return type() == Kind::kObject; }
  [[nodiscard]] bool is_structured() const noexcept { return is_array() || is_object(); }

  /// A boolean, a number (converted to T) or a copy of a string.
  template <typename T>
  [[nodiscard]] T get() const;
  [[nodiscard]] const std::string& text() const {
    return *std::get<std::unique_ptr<std::string>>(data_);
  }
  [[nodiscard]] std::string& text() { return *std::get<std::unique_ptr<std::string>>(data_); }

  /// Elements or members; 0 of null, 1 of anything else.
  [[nodiscard]] std::size_t size() const noexcept;
  [[nodiscard]] bool empty() const noexcept { return size() == 0; }

  // An array's elements; of anything else there are none.
  [[nodiscard]] std::span<const JsonValue> elements() const noexcept;
  [[nodiscard]] auto begin() const noexcept { return elements().begin(); }
  [[nodiscard]] auto end() const noexcept { return elements().end(); }
  [[nodiscard]] const JsonValue& front() const { return elements().front(); }
  [[nodiscard]] const JsonValue& operator[](std::size_t index) const { return elements()[index]; }
  /// Null becomes an array first.
  JsonValue& push_back(JsonValue value);

  // An object's members; of anything else there are none.
  [[nodiscard]] std::span<const Member> items() const noexcept;
  /// nullptr where there is none.
  [[nodiscard]] const JsonValue* find(std::string_view name) const noexcept;
  [[nodiscard]] bool contains(std::string_view name) const noexcept {
    return find(name) != nullptr;
  }
  /// The member, made if there is none. Null becomes an object first.
  JsonValue& operator[](std::string_view name);
  /// Adds a member without looking for one of the same name.
  JsonValue& add_member(std::string name, JsonValue value);

  /// Numbers by value, whatever their kind.
  friend bool operator==(const JsonValue& a, const JsonValue& b);

 private:
  std::variant<std::nullptr_t, bool, std::int64_t, std::uint64_t, double,
               std::unique_ptr<std::string>, std::unique_ptr<Array>, std::unique_ptr<Object>>
      data_;
};

struct JsonValue::Member {
  std::string key;
  JsonValue value;
};

template <typename T>
concept JsonSource =
    !std::same_as<std::remove_cvref_t<T>, JsonItem> && std::constructible_from<JsonValue, T&&>;

/// An element of a braced list, which can be moved out of it.
class JsonItem {
 public:
  template <JsonSource T>
  JsonItem(T&& value)  // NOLINT(google-explicit-constructor,bugprone-forwarding-reference-overload)
      : value_(std::forward<T>(value)) {}
  JsonItem(std::initializer_list<JsonItem> items) : value_(items) {}

  [[nodiscard]] const JsonValue& value() const noexcept { return value_; }
  [[nodiscard]] JsonValue take() const { return std::move(value_); }

 private:
  mutable JsonValue value_;
};

// Defaulted after the class, they are not inline by themselves: without the word, two units clash.
// NOLINTBEGIN(readability-redundant-inline-specifier)
inline JsonValue::JsonValue(JsonValue&& other) noexcept = default;
inline JsonValue& JsonValue::operator=(JsonValue&& other) noexcept = default;
inline JsonValue::~JsonValue() = default;
// NOLINTEND(readability-redundant-inline-specifier)

template <typename Element>
JsonValue::JsonValue(const std::vector<Element>& values) : JsonValue(array()) {
  auto& list = *std::get<std::unique_ptr<Array>>(data_);
  list.reserve(values.size());
  for (const auto& value : values) {
    list.emplace_back(value);
  }
}

template <typename T>
T JsonValue::get() const {
  if constexpr (std::same_as<T, bool>) {
    return std::get<bool>(data_);
  } else if constexpr (std::same_as<T, std::string>) {
    return text();
  } else {
    if (const auto* number = std::get_if<std::int64_t>(&data_)) {
      return static_cast<T>(*number);
    }
    if (const auto* number = std::get_if<std::uint64_t>(&data_)) {
      return static_cast<T>(*number);
    }
    return static_cast<T>(std::get<double>(data_));
  }
}

/// Appends compact JSON text. Invalid UTF-8 becomes U+FFFD and a number that is not finite becomes
/// null.
void write_json(const JsonValue& value, std::string& out);
void write_json_string(std::string_view text, std::string& out);
/// The same without the quotes, for a string written in pieces.
void write_json_escaped(std::string_view text, std::string& out);
[[nodiscard]] std::string dump_json(const JsonValue& value);

}  // namespace spel
