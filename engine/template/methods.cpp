// The methods of strings, mappings and lists.
#include <algorithm>
#include <optional>
#include <string>

#include "engine/template/library.h"
#include "engine/template/operators.h"
#include "engine/template/text_functions.h"

namespace spel::engine {
namespace {

using Kind = TemplateValue::Kind;

/// A method at work.
struct Call {
  std::string_view name;
  const TemplateValue& object;
  const TemplateArguments& arguments;
  TemplateWork& work;

  [[noreturn]] void wrong(const std::string& what) const {
    work.wrong(std::string(name) + "(): " + what);
  }
  [[nodiscard]] const MarkedText& text() const { return object.text(); }
  /// None where there is no argument there, or it is none.
  [[nodiscard]] const TemplateValue* find(std::size_t place, std::string_view called) const {
    const TemplateValue* value = arguments.find(place, called);
    return value == nullptr || value->is(Kind::kNone) ? nullptr : value;
  }
  [[nodiscard]] const MarkedText& need_text(std::size_t place) const {
    const TemplateValue* value = arguments.find(place, "");
    if (value == nullptr || !value->is(Kind::kText)) {
      wrong("expected a string");
    }
    return value->text();
  }
  [[nodiscard]] std::optional<std::string_view> text_or_none(std::size_t place,
                                                             std::string_view called) const {
    const TemplateValue* value = find(place, called);
    if (value == nullptr) {
      return std::nullopt;
    }
    if (!value->is(Kind::kText)) {
      wrong("expected a string");
    }
    return value->text().text;
  }
  [[nodiscard]] std::int64_t integer(std::size_t place, std::string_view called,
                                     std::int64_t fallback) const {
    const TemplateValue* value = find(place, called);
    if (value == nullptr) {
      return fallback;
    }
    if (!value->is(Kind::kInt) && !value->is(Kind::kBool)) {
      wrong("expected an integer");
    }
    return value->integer();
  }
  [[nodiscard]] TemplateValue made(MarkedText out) const {
    work.bytes(out.text.size());
    return TemplateValue(std::move(out));
  }
  [[nodiscard]] static TemplateValue made(TemplateValue::List out) {
    return TemplateValue(std::move(out));
  }
};

// --- Strings
// ---------------------------------------------------------------------------------------

/// startswith and endswith: one string, or any of several.
TemplateValue text_begins(const Call& call) {
  const auto matches = [&](const TemplateValue& end) {
    if (!end.is(Kind::kText)) {
      call.wrong("expected a string or a list of them");
    }
    return call.name == "startswith" ? call.text().text.starts_with(end.text().text)
                                     : call.text().text.ends_with(end.text().text);
  };
  const TemplateValue* ends = call.arguments.find(0, "");
  if (ends == nullptr) {
    call.wrong("expected a string or a list of them");
  }
  return TemplateValue(ends->is(Kind::kList) ? std::ranges::any_of(ends->list(), matches)
                                             : matches(*ends));
}
TemplateValue text_strip(const Call& call) {
  const Ends ends = call.name == "lstrip"   ? Ends::kLeft
                    : call.name == "rstrip" ? Ends::kRight
                                            : Ends::kBoth;
  return call.made(stripped(call.text(), ends, call.text_or_none(0, "")));
}
TemplateValue text_split(const Call& call) {
  return call.made(split_text(call.text(), call.text_or_none(0, "sep"),
                              call.integer(1, "maxsplit", -1), call.name == "rsplit", call.work));
}
TemplateValue text_splitlines(const Call& call) {
  const TemplateValue* keep = call.find(0, "keepends");
  return call.made(split_lines(call.text(), keep != nullptr && keep->truth(), call.work));
}
TemplateValue text_replace(const Call& call) {
  return TemplateValue(replaced(call.text(), call.need_text(0).text, call.need_text(1),
                                call.integer(2, "count", -1), call.work));
}
TemplateValue text_case(const Call& call) {
  return call.made(
      in_case(call.text(), call.name == "upper" ? LetterCase::kUpper : LetterCase::kLower));
}
TemplateValue text_title(const Call& call) {
  return call.made(titled(call.text(), [](char32_t c) { return !is_letter(c); }));
}
TemplateValue text_capitalize(const Call& call) { return call.made(capitalized(call.text())); }
TemplateValue text_join(const Call& call) {
  const TemplateValue* list = call.arguments.find(0, "");
  if (list == nullptr) {
    call.wrong("expected a list of strings");
  }
  MarkedText out;
  bool first = true;
  for (const TemplateValue& one : elements(*list, call.work)) {
    if (!one.is(Kind::kText)) {
      call.wrong("expected strings, not a " + std::string(one.kind_name()));
    }
    call.work.bytes(one.text().text.size() + call.text().text.size());
    if (!first) {
      out.append(call.text());
    }
    first = false;
    out.append(one.text());
  }
  return TemplateValue(std::move(out));
}
/// find, index and count of a part.
TemplateValue text_find(const Call& call) {
  const std::string& part = call.need_text(0).text;
  const std::string& text = call.text().text;
  call.work.steps(text.size() / 64);
  if (call.name == "count") {
    std::int64_t count =
        part.empty() ? static_cast<std::int64_t>(character_offsets(text).size()) : 0;
    for (std::size_t at = part.empty() ? std::string::npos : text.find(part);
         at != std::string::npos; at = text.find(part, at + part.size())) {
      ++count;
    }
    return TemplateValue(count);
  }
  const std::size_t at = text.find(part);
  if (at == std::string::npos) {
    if (call.name == "index") {
      call.wrong("the part is not there");
    }
    return TemplateValue(std::int64_t{-1});
  }
  return TemplateValue(static_cast<std::int64_t>(
      character_offsets(std::string_view(text).substr(0, at)).size() - 1));
}
TemplateValue text_remove(const Call& call) {
  const std::string& end = call.need_text(0).text;
  const MarkedText& text = call.text();
  const std::size_t size = text.text.size();
  if (call.name == "removeprefix") {
    return call.made(text.part(text.text.starts_with(end) ? end.size() : 0, size));
  }
  return call.made(text.part(0, text.text.ends_with(end) ? size - end.size() : size));
}
TemplateValue text_is(const Call& call) {
  const MarkedText& text = call.text();
  const auto offsets = character_offsets(text.text);
  bool all = offsets.size() > 1;
  for (std::size_t i = 0; i + 1 < offsets.size() && all; ++i) {
    const TemplateValue one(text.part(offsets[i], offsets[i + 1]));
    const std::string& c = one.text().text;
    if (call.name == "isdigit") {
      all = c.size() == 1 && c[0] >= '0' && c[0] <= '9';
    } else if (call.name == "isspace") {
      all = stripped(one.text(), Ends::kBoth, std::nullopt).text.empty();
    } else {
      all = false;
    }
  }
  if (call.name == "islower" || call.name == "isupper") {
    all = is_in_case(text.text, call.name == "islower" ? LetterCase::kLower : LetterCase::kUpper);
  }
  return TemplateValue(all);
}

// --- Mappings and lists
// ----------------------------------------------------------------------------

TemplateValue dict_get(const Call& call) {
  const TemplateValue* key = call.arguments.find(0, "");
  const TemplateValue* other = call.arguments.find(1, "");
  if (key == nullptr) {
    call.wrong("expected a key");
  }
  const TemplateValue* found =
      key->is(Kind::kText) ? find_member(call.object.dict(), key->text().text) : nullptr;
  return found != nullptr   ? *found
         : other != nullptr ? *other
                            : TemplateValue(TemplateValue::None());
}
/// items, keys and values.
TemplateValue dict_parts(const Call& call) {
  TemplateValue::List out;
  for (const auto& [key, value] : call.object.dict()) {
    call.work.bytes(2 * sizeof(TemplateValue));
    if (call.name == "items") {
      out.emplace_back(TemplateValue::List{TemplateValue(key), value});
    } else {
      out.push_back(call.name == "keys" ? TemplateValue(key) : value);
    }
  }
  return TemplateValue(std::move(out));
}
TemplateValue list_find(const Call& call) {
  const TemplateValue* wanted = call.arguments.find(0, "");
  if (wanted == nullptr) {
    call.wrong("expected a value");
  }
  const TemplateValue::List& list = call.object.list();
  call.work.steps(list.size());
  const auto same = [&](const TemplateValue& one) { return one.equals(*wanted); };
  if (call.name == "count") {
    return TemplateValue(static_cast<std::int64_t>(std::ranges::count_if(list, same)));
  }
  const auto at = std::ranges::find_if(list, same);
  if (at == list.end()) {
    call.wrong("the value is not there");
  }
  return TemplateValue(static_cast<std::int64_t>(at - list.begin()));
}

struct Method {
  Kind of;
  std::string_view name;
  TemplateValue (*call)(const Call&);
};
constexpr Method kMethods[] = {
    {Kind::kText, "startswith", text_begins},
    {Kind::kText, "endswith", text_begins},
    {Kind::kText, "strip", text_strip},
    {Kind::kText, "lstrip", text_strip},
    {Kind::kText, "rstrip", text_strip},
    {Kind::kText, "split", text_split},
    {Kind::kText, "rsplit", text_split},
    {Kind::kText, "splitlines", text_splitlines},
    {Kind::kText, "replace", text_replace},
    {Kind::kText, "upper", text_case},
    {Kind::kText, "lower", text_case},
    {Kind::kText, "title", text_title},
    {Kind::kText, "capitalize", text_capitalize},
    {Kind::kText, "join", text_join},
    {Kind::kText, "find", text_find},
    {Kind::kText, "index", text_find},
    {Kind::kText, "count", text_find},
    {Kind::kText, "removeprefix", text_remove},
    {Kind::kText, "removesuffix", text_remove},
    {Kind::kText, "isdigit", text_is},
    {Kind::kText, "isspace", text_is},
    {Kind::kText, "islower", text_is},
    {Kind::kText, "isupper", text_is},
    {Kind::kDict, "get", dict_get},
    {Kind::kDict, "items", dict_parts},
    {Kind::kDict, "keys", dict_parts},
    {Kind::kDict, "values", dict_parts},
    {Kind::kList, "index", list_find},
    {Kind::kList, "count", list_find},
};

}  // namespace

bool is_template_method(std::string_view name) {
  return name == "cycle" ||
         std::ranges::any_of(kMethods, [&](const Method& one) { return one.name == name; });
}

TemplateValue call_template_method(const TemplateValue& object, std::string_view name,
                                   const TemplateArguments& arguments, TemplateWork& work) {
  for (const Method& method : kMethods) {
    if (method.of == object.kind() && method.name == name) {
      return method.call({name, object, arguments, work});
    }
  }
  if (object.is(Kind::kUndefined)) {
    work.wrong("\"" + object.undefined_name() + "\" is undefined");
  }
  // In the words that templates' authors know.
  work.wrong("'" + std::string(object.python_name()) + " object' has no attribute '" +
             std::string(name) + "'");
}

}  // namespace spel::engine
