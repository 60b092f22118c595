#include "config/json/reader.h"

#include <iterator>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>
#include <vector>

namespace spel {

namespace {

using Library = nlohmann::json;

/// Bytes of a key an error repeats.
constexpr std::size_t kKeyShownMax = 64;
/// Bytes at either end of what the library says: it repeats what it read last, however long.
constexpr std::size_t kDetailShownMax = 256;

/// Reads a text and tells where it stands: the library's events come without their places.
class Tracked {
 public:
  using iterator_category = std::input_iterator_tag;
  using value_type = char;
  using difference_type = std::ptrdiff_t;
  using pointer = const char*;
  using reference = const char&;

  Tracked(const char* at, const char** place) : at_(at), place_(place) {}

  reference operator*() const { return *at_; }
  Tracked& operator++() {
    *place_ = ++at_;
    return *this;
  }
  Tracked operator++(int) {
    Tracked before = *this;
    ++*this;
    return before;
  }
  friend bool operator==(const Tracked& a, const Tracked& b) { return a.at_ == b.at_; }

 private:
  const char* at_;
  const char** place_;
};

JsonError syntax_error(std::size_t position, const std::string& detail) {
  const std::string shown = detail.size() <= 2 * kDetailShownMax
                                ? detail
                                : detail.substr(0, kDetailShownMax) + " ... " +
                                      detail.substr(detail.size() - kDetailShownMax);
  JsonError error(JsonError::Fault::kSyntax, "not valid JSON: " + shown);
  error.position = position;
  return error;
}

/// The events of a text, without the one that is not JSON's.
class Events : public nlohmann::json_sax<Library> {
 public:
  bool null() final { return scalar(nullptr); }
  bool boolean(bool value) final { return scalar(value); }
  bool number_integer(number_integer_t value) final { return scalar(value); }
  bool number_unsigned(number_unsigned_t value) final { return scalar(value); }
  bool number_float(number_float_t value, const string_t& /*text*/) final { return scalar(value); }
  bool binary(binary_t& /*value*/) final { return false; }
  bool parse_error(std::size_t position, const std::string& /*last_token*/,
                   const Library::exception& error) final {
    JsonError fault = syntax_error(position, error.what());
    fault.key = outermost_key();
    throw fault;
  }

 protected:
  virtual bool scalar(JsonValue value) = 0;
  /// The beginning of the name of the outermost object's member that was begun last.
  [[nodiscard]] virtual std::string outermost_key() const { return {}; }
};

/// Checks all of a text and builds nothing but the names of the objects it is inside of.
class Checker final : public Events {
 public:
  Checker(const JsonLimits& limits, std::map<std::string, std::size_t, std::less<>>* members)
      : limits_(limits), members_(members) {}

  void run(std::string_view text) {
    if (text.size() > limits_.bytes) {
      throw JsonError(JsonError::Fault::kTooLong,
                      "larger than " + std::to_string(limits_.bytes) + " bytes");
    }
    // The library takes a NUL byte for the end of the text and would not look at what follows.
    if (const auto nul = text.find('\0'); nul != std::string_view::npos) {
      throw syntax_error(nul + 1, "a NUL byte");
    }
    begin_ = place_ = text.data();
    const char* end = text.data() + text.size();
    (void)Library::sax_parse(Tracked(begin_, &place_), Tracked(end, &place_), this,
                             Library::input_format_t::json, true, limits_.comments);
  }

  bool string(string_t& /*value*/) override { return scalar(nullptr); }

  bool start_object(std::size_t /*elements*/) override {
    if (!names_.empty()) {
      count();
    }
    open();
    names_.back().emplace();
    return true;
  }
  bool start_array(std::size_t /*elements*/) override {
    count();
    open();
    return true;
  }
  bool end_object() override { return close(); }
  bool end_array() override { return close(); }

  bool key(string_t& name) override {
    const bool outermost = names_.size() == 1;
    auto& names = *names_.back();
    const bool is_new =
        outermost && members_ != nullptr
            ? members_->emplace(name, static_cast<std::size_t>(place_ - begin_)).second
            : names.insert(name).second;
    if (!is_new) {
      const std::string shown = name.substr(0, kKeyShownMax);
      JsonError error(JsonError::Fault::kDuplicateKey, shown + " appears twice");
      error.key = shown;
      error.top_level = outermost;
      throw error;
    }
    if (outermost) {
      outermost_key_ = name.substr(0, kKeyShownMax);
    }
    const std::size_t count = outermost && members_ != nullptr ? members_->size() : names.size();
    if (count > limits_.members) {
      throw JsonError(JsonError::Fault::kTooMuch,
                      "an object has more than " + std::to_string(limits_.members) + " members");
    }
    return true;
  }

 private:
  bool scalar(JsonValue /*value*/) override {
    count();
    return true;
  }

  void count() {
    if (names_.empty() && members_ != nullptr) {
      throw JsonError(JsonError::Fault::kNotObject, "not a JSON object");
    }
    if (++values_ > limits_.values) {
      throw JsonError(JsonError::Fault::kTooMuch,
                      "more than " + std::to_string(limits_.values) + " values");
    }
  }

  void open() {
    if (names_.size() == limits_.depth) {
      throw JsonError(JsonError::Fault::kTooDeep,
                      "nested deeper than " + std::to_string(limits_.depth) + " levels");
    }
    names_.emplace_back();
  }

  bool close() {
    names_.pop_back();
    return true;
  }

  [[nodiscard]] std::string outermost_key() const override { return outermost_key_; }

  const JsonLimits& limits_;
  std::map<std::string, std::size_t, std::less<>>* members_;  ///< Of an object that must be one.
  /// Of the open containers; nothing for an array.
  std::vector<std::optional<std::set<std::string, std::less<>>>> names_;
  std::size_t values_ = 0;
  std::string outermost_key_;
  const char* begin_ = nullptr;
  const char* place_ = nullptr;
};

/// Builds one value of a text that has been checked. The library's own builder keeps the last of
/// two equal keys, knows no limit, and with a filter takes quadratic time in an array's elements.
class Builder final : public Events {
 public:
  Builder(const JsonLimits& limits, std::size_t& parts) : limits_(limits), parts_(parts) {}

  /// Of the value `text` begins with; what follows it is not looked at.
  [[nodiscard]] JsonValue run(std::string_view text) {
    (void)Library::sax_parse(text.begin(), text.end(), this, Library::input_format_t::json, false,
                             limits_.comments);
    return std::move(root_);
  }

  bool string(string_t& value) override {
    count();
    return scalar(std::move(value));
  }
  bool start_object(std::size_t /*elements*/) override { return open(JsonValue::object()); }
  bool start_array(std::size_t /*elements*/) override { return open(JsonValue::array()); }
  bool end_object() override { return close(); }
  bool end_array() override { return close(); }
  bool key(string_t& name) override {
    count();
    member_ = &open_.back()->add_member(std::move(name), nullptr);
    return true;
  }

 private:
  void count() {
    if (++parts_ > limits_.parts) {
      throw JsonError(JsonError::Fault::kTooMuch, "more than " + std::to_string(limits_.parts) +
                                                      " arrays, objects and strings");
    }
  }

  /// Puts a value where the parser stands: the root, the current member or the array's end.
  JsonValue* place(JsonValue value) {
    JsonValue* target = &root_;
    if (member_ != nullptr) {
      target = std::exchange(member_, nullptr);
    } else if (!open_.empty()) {
      return &open_.back()->push_back(std::move(value));
    }
    *target = std::move(value);
    return target;
  }

  bool scalar(JsonValue value) override {
    place(std::move(value));
    return true;
  }

  bool open(JsonValue container) {
    count();
    // An open container is the last element of its parent, which cannot grow before it is closed:
    // the pointers stay valid.
    open_.push_back(place(std::move(container)));
    return true;
  }

  bool close() {
    open_.pop_back();
    return true;
  }

  const JsonLimits& limits_;
  std::size_t& parts_;
  JsonValue root_;
  std::vector<JsonValue*> open_;
  JsonValue* member_ = nullptr;  ///< Waiting for its value.
};

}  // namespace

JsonValue read_json(std::string_view text, const JsonLimits& limits) {
  Checker(limits, nullptr).run(text);
  std::size_t parts = 0;
  return Builder(limits, parts).run(text);
}

JsonObject::JsonObject(std::string_view text, const JsonLimits& limits)
    : text_(text), limits_(limits) {
  limits_.comments = false;  // A member's value is found behind blanks and its colon alone.
  Checker(limits_, &members_).run(text);
}

JsonValue* JsonObject::find(std::string_view name) {
  const auto place = members_.find(name);
  if (place == members_.end()) {
    return nullptr;
  }
  if (const auto known = built_.find(name); known != built_.end()) {
    return &known->second;
  }
  return &built_.emplace(place->first, build_at(place->second, parts_)).first->second;
}

std::optional<JsonValue> JsonObject::build(std::string_view name) const {
  const auto place = members_.find(name);
  std::size_t parts = 0;
  return place == members_.end() ? std::nullopt : std::optional(build_at(place->second, parts));
}

JsonValue JsonObject::build_at(std::size_t place, std::size_t& parts) const {
  std::string_view rest = text_.substr(place);
  rest.remove_prefix(rest.find(':') + 1);
  return Builder(limits_, parts).run(rest);
}

}  // namespace spel
