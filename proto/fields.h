// Typed reading of a client's JSON object. Only for the parsers of this module.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "proto/json_text.h"

namespace spel::proto {

/// Closed unless said.
struct NumberRange {
  double min = 0.0;
  double max = 0.0;
  bool min_open = false;
};

/// `value` when it is a whole number in [min, max]; otherwise throws RequestError (400, `param`).
/// 16.0 is a whole number, as JSON Schema has it; true, 1.9, 2^64 and "1" are not.
[[nodiscard]] std::int64_t require_integer(const JsonValue& value, const std::string& param,
                                           std::int64_t min, std::int64_t max);
/// The same for any finite number; NaN is in no range.
[[nodiscard]] double require_number(const JsonValue& value, const std::string& param,
                                    const NumberRange& range);

/// The members of one object. A member that is null counts as absent, everywhere. Remembers which
/// names were asked for, so that the rest can be counted.
class Fields {
 public:
  /// `object` must outlive this.
  explicit Fields(JsonObject& object);
  /// Of an object inside another; `prefix` goes before each name in errors ("speculation.").
  explicit Fields(const JsonValue& object, std::string prefix = {});

  /// nullptr when absent or null.
  [[nodiscard]] const JsonValue* find(std::string_view name);

  [[nodiscard]] std::optional<std::int64_t> integer(std::string_view name, std::int64_t min,
                                                    std::int64_t max);
  [[nodiscard]] std::optional<std::size_t> count(std::string_view name, std::size_t min,
                                                 std::size_t max);
  [[nodiscard]] std::optional<double> number(std::string_view name, const NumberRange& range);
  [[nodiscard]] std::optional<bool> boolean(std::string_view name);
  [[nodiscard]] std::optional<std::string> text(std::string_view name, std::size_t bytes_max);
  /// An object's members, with this object's prefix extended.
  [[nodiscard]] std::optional<Fields> object(std::string_view name);

  /// Members nobody asked for.
  [[nodiscard]] std::size_t unknown() const;
  /// Calls `visitor` with the name of each; it may ask for that one.
  void visit_unasked(const std::function<void(const std::string& name)>& visitor) const;
  /// Counts members as asked for whose value changes nothing.
  void ignore(std::initializer_list<std::string_view> names);
  /// RequestError (400) about the first member nobody asked for, unless it is null. For objects
  /// that are this server's own: there a misspelt member would silently change the answer.
  void refuse_unknown() const;

  [[nodiscard]] std::string param(std::string_view name) const;
  /// RequestError (400) about member `name`: "<name> <problem>".
  [[noreturn]] void fail(std::string_view name, const std::string& problem,
                         std::string code = {}) const;

 private:
  JsonObject* body_ = nullptr;  ///< One of the two is there.
  const JsonValue* object_ = nullptr;
  std::string prefix_;
  std::set<std::string, std::less<>> asked_;
};

}  // namespace spel::proto
