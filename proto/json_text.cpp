#include "proto/json_text.h"

#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "proto/error_body.h"

namespace spel::proto {

namespace {

using nlohmann::json;

/// Bytes of a client's key an error repeats.
constexpr std::size_t kNameShownMax = 64;

ApiError invalid_json(std::size_t position) {
  return invalid_request(
      "The request body is not valid JSON: error at byte " + std::to_string(position) + ".", {},
      "invalid_json");
}

/// Builds the document from parser events. The library's own builder keeps the last of two equal
/// keys, knows no depth limit, and with a filter callback takes quadratic time in the elements of
/// an array.
class StrictBuilder final : public nlohmann::json_sax<json> {
 public:
  explicit StrictBuilder(std::size_t depth_max) : depth_max_(depth_max) {}

  [[nodiscard]] json take() { return std::move(root_); }

  bool null() override { return add(nullptr); }
  bool boolean(bool value) override { return add(value); }
  bool number_integer(number_integer_t value) override { return add(value); }
  bool number_unsigned(number_unsigned_t value) override { return add(value); }
  bool number_float(number_float_t value, const string_t& /*text*/) override { return add(value); }
  bool string(string_t& value) override { return add(std::move(value)); }
  bool binary(binary_t& /*value*/) override { return false; }  // Not a JSON event.

  bool start_object(std::size_t /*elements*/) override { return open(json::object()); }
  bool start_array(std::size_t /*elements*/) override { return open(json::array()); }
  bool end_object() override { return close(); }
  bool end_array() override { return close(); }

  bool key(string_t& value) override {
    const auto [place, inserted] = open_.back()->emplace(value, nullptr);
    if (!inserted) {
      // Only a top-level member is a parameter by its bare name.
      const std::string name = value.substr(0, kNameShownMax);
      throw RequestError(invalid_request("The key \"" + name + "\" appears twice in one object.",
                                         open_.size() == 1 ? name : std::string(),
                                         "duplicate_key"));
    }
    member_ = &*place;
    return true;
  }

  bool parse_error(std::size_t position, const std::string& /*last_token*/,
                   const json::exception& /*error*/) override {
    throw RequestError(invalid_json(position));
  }

 private:
  /// Puts a value where the parser stands: the document, the current member or the array's end.
  json* place(json value) {
    json* target = &root_;
    if (member_ != nullptr) {
      target = std::exchange(member_, nullptr);
    } else if (!open_.empty()) {
      open_.back()->push_back(std::move(value));
      return &open_.back()->back();
    }
    *target = std::move(value);
    return target;
  }

  template <typename Value>
  bool add(Value&& value) {
    place(json(std::forward<Value>(value)));
    return true;
  }

  bool open(json container) {
    if (open_.size() == depth_max_) {
      throw RequestError(invalid_request(
          "The request body is nested deeper than " + std::to_string(depth_max_) + " levels.", {},
          "json_too_deep"));
    }
    // An open container is the last element of its parent, which cannot grow before it is closed:
    // the pointers stay valid.
    open_.push_back(place(std::move(container)));
    return true;
  }

  bool close() {
    open_.pop_back();
    return true;
  }

  const std::size_t depth_max_;
  json root_;
  std::vector<json*> open_;
  json* member_ = nullptr;  ///< Waiting for its value.
};

template <typename Json>
std::string dump(const Json& value) {
  return value.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace

json parse_json_object(std::string_view text, const JsonLimits& limits) {
  if (text.size() > limits.bytes) {
    ApiError error = http_error(
        413, "The request body is larger than " + std::to_string(limits.bytes) + " bytes.");
    throw RequestError(std::move(error));
  }
  StrictBuilder builder(limits.depth);
  // The library takes a NUL byte for the end of the text and would not look at what follows.
  if (const auto nul = text.find('\0'); nul != std::string_view::npos) {
    throw RequestError(invalid_json(nul + 1));
  }
  json::sax_parse(text.begin(), text.end(), &builder);
  json root = builder.take();
  if (!root.is_object()) {
    throw RequestError(
        invalid_request("The request body must be a JSON object.", {}, "invalid_json"));
  }
  return root;
}

std::string dump_json(const json& value) { return dump(value); }
std::string dump_json(const nlohmann::ordered_json& value) { return dump(value); }

}  // namespace spel::proto
