#include "engine/template/value.h"

#include <algorithm>

namespace spel::engine {

std::int64_t TemplateValue::integer() const {
  return is(Kind::kBool) ? (boolean() ? 1 : 0) : std::get<std::int64_t>(data_);
}

double TemplateValue::real() const {
  return is(Kind::kFloat) ? std::get<double>(data_) : static_cast<double>(integer());
}

bool TemplateValue::truth() const {
  switch (kind()) {
    case Kind::kUndefined:
    case Kind::kNone:
      return false;
    case Kind::kBool:
      return boolean();
    case Kind::kInt:
      return integer() != 0;
    case Kind::kFloat:
      return real() != 0.0;
    case Kind::kText:
      return !text().text.empty();
    case Kind::kList:
      return !list().empty();
    case Kind::kDict:
      return !dict().empty();
    case Kind::kNamespace:
    case Kind::kMacro:
    case Kind::kFunction:
      return true;
  }
  return false;
}

bool TemplateValue::equals(const TemplateValue& other) const {
  if (is_number() && other.is_number()) {
    return is(Kind::kFloat) || other.is(Kind::kFloat) ? real() == other.real()
                                                      : integer() == other.integer();
  }
  if (kind() != other.kind()) {
    return false;
  }
  switch (kind()) {
    case Kind::kUndefined:
    case Kind::kNone:
      return true;
    case Kind::kText:
      return text().text == other.text().text;
    case Kind::kList:
      return std::ranges::equal(list(), other.list(),
                                [](const auto& a, const auto& b) { return a.equals(b); });
    case Kind::kDict:
      return dict().size() == other.dict().size() &&
             std::ranges::all_of(dict(), [&](const auto& member) {
               const TemplateValue* found = find_member(other.dict(), member.first.text);
               return found != nullptr && found->equals(member.second);
             });
    case Kind::kNamespace:
      return &names() == &other.names();
    case Kind::kMacro:
      return macro().node == other.macro().node;
    case Kind::kFunction:
      return function() == other.function();
    case Kind::kBool:
    case Kind::kInt:
    case Kind::kFloat:
      break;
  }
  return false;
}

std::string_view TemplateValue::kind_name() const {
  switch (kind()) {
    case Kind::kUndefined:
      return "undefined";
    case Kind::kNone:
      return "none";
    case Kind::kBool:
      return "boolean";
    case Kind::kInt:
      return "integer";
    case Kind::kFloat:
      return "number";
    case Kind::kText:
      return "string";
    case Kind::kList:
      return "list";
    case Kind::kDict:
      return "mapping";
    case Kind::kNamespace:
      return "namespace";
    case Kind::kMacro:
      return "macro";
    case Kind::kFunction:
      return "function";
  }
  return "value";
}

std::string_view TemplateValue::python_name() const {
  switch (kind()) {
    case Kind::kNone:
      return "NoneType";
    case Kind::kBool:
      return "bool";
    case Kind::kInt:
      return "int";
    case Kind::kFloat:
      return "float";
    case Kind::kText:
      return "str";
    case Kind::kList:
      return "list";
    case Kind::kDict:
      return "dict";
    case Kind::kUndefined:
    case Kind::kNamespace:
    case Kind::kMacro:
    case Kind::kFunction:
      break;
  }
  return kind_name();
}

const TemplateValue* find_member(const TemplateValue::Dict& dict, std::string_view key) {
  const auto at = std::ranges::find(
      dict, key, [](const auto& member) -> std::string_view { return member.first.text; });
  return at != dict.end() ? &at->second : nullptr;
}

}  // namespace spel::engine
