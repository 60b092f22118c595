// The values of a template: Python's, as far as templates need them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "engine/template/marked_text.h"

namespace spel::engine {

struct TemplateNode;
class TemplateScope;

/// Cheap to copy: what is long is shared and never changes, but for namespaces. Not thread-safe.
class TemplateValue {
 public:
  struct Undefined {
    std::string name;  ///< For messages.
  };
  struct None {};
  using List = std::vector<TemplateValue>;
  /// Keys are strings; in the order they came.
  using Dict = std::vector<std::pair<MarkedText, TemplateValue>>;
  /// The one thing a template can change.
  struct Namespace {
    Dict members;
  };
  /// A macro, and the scope it was defined in.
  struct Macro {
    const TemplateNode* node = nullptr;
    TemplateScope* scope = nullptr;
  };
  /// A function the interpreter brings.
  struct Function {
    std::string_view name;
  };
  enum class Kind {
    kUndefined,
    kNone,
    kBool,
    kInt,
    kFloat,
    kText,
    kList,
    kDict,
    kNamespace,
    kMacro,
    kFunction
  };

  TemplateValue() : data_(Undefined{}) {}
  TemplateValue(Undefined value)
      : data_(std::move(value)) {}             // NOLINT(google-explicit-constructor)
  TemplateValue(None value) : data_(value) {}  // NOLINT(google-explicit-constructor)
  explicit TemplateValue(bool value) : data_(value) {}
  explicit TemplateValue(std::int64_t value) : data_(value) {}
  explicit TemplateValue(double value) : data_(value) {}
  explicit TemplateValue(MarkedText value)
      : data_(std::make_shared<const MarkedText>(std::move(value))) {}
  /// The template's own words.
  explicit TemplateValue(std::string_view text)
      : TemplateValue(MarkedText(std::string(text), false)) {}
  /// A request's.
  [[nodiscard]] static TemplateValue foreign(std::string_view text) {
    return TemplateValue(MarkedText(std::string(text), true));
  }
  explicit TemplateValue(List value) : data_(std::make_shared<const List>(std::move(value))) {}
  explicit TemplateValue(Dict value) : data_(std::make_shared<const Dict>(std::move(value))) {}
  explicit TemplateValue(std::shared_ptr<Namespace> value) : data_(std::move(value)) {}
  explicit TemplateValue(Macro value) : data_(value) {}
  explicit TemplateValue(Function value) : data_(value) {}

  [[nodiscard]] Kind kind() const noexcept { return static_cast<Kind>(data_.index()); }
  [[nodiscard]] bool is(Kind kind) const noexcept { return this->kind() == kind; }
  [[nodiscard]] bool is_number() const noexcept {
    return is(Kind::kBool) || is(Kind::kInt) || is(Kind::kFloat);
  }

  // Of a value of that kind.
  [[nodiscard]] const std::string& undefined_name() const {
    return std::get<Undefined>(data_).name;
  }
  [[nodiscard]] bool boolean() const { return std::get<bool>(data_); }
  /// Of an integer, or a boolean as 0 or 1.
  [[nodiscard]] std::int64_t integer() const;
  /// Of any number.
  [[nodiscard]] double real() const;
  [[nodiscard]] const MarkedText& text() const {
    return *std::get<std::shared_ptr<const MarkedText>>(data_);
  }
  [[nodiscard]] const List& list() const { return *std::get<std::shared_ptr<const List>>(data_); }
  [[nodiscard]] const Dict& dict() const { return *std::get<std::shared_ptr<const Dict>>(data_); }
  [[nodiscard]] Namespace& names() const { return *std::get<std::shared_ptr<Namespace>>(data_); }
  [[nodiscard]] const Macro& macro() const { return std::get<Macro>(data_); }
  [[nodiscard]] std::string_view function() const { return std::get<Function>(data_).name; }

  /// As Python decides it.
  [[nodiscard]] bool truth() const;
  /// As Python's ==: numbers by value, everything else by kind first.
  [[nodiscard]] bool equals(const TemplateValue& other) const;
  /// "string", "integer", …, for messages.
  [[nodiscard]] std::string_view kind_name() const;
  /// "str", "int", …
  [[nodiscard]] std::string_view python_name() const;

 private:
  std::variant<Undefined, None, bool, std::int64_t, double, std::shared_ptr<const MarkedText>,
               std::shared_ptr<const List>, std::shared_ptr<const Dict>, std::shared_ptr<Namespace>,
               Macro, Function>
      data_;
};

/// The member called `key`; nullptr if there is none.
[[nodiscard]] const TemplateValue* find_member(const TemplateValue::Dict& dict,
                                               std::string_view key);

}  // namespace spel::engine
