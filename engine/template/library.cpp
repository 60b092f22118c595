// Functions, filters and tests. Methods are in methods.cpp.
#include "engine/template/library.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <functional>
#include <limits>
#include <memory>

#include "engine/template/operators.h"
#include "engine/template/text_functions.h"

namespace spel::engine {
namespace {

using Kind = TemplateValue::Kind;

/// Of an argument that only has a name.
constexpr std::size_t kNowhere = std::numeric_limits<std::size_t>::max();

/// A filter or a test at work.
struct Use {
  std::string_view name;
  const TemplateValue& subject;
  const TemplateArguments& arguments;
  TemplateWork& work;

  [[nodiscard]] const TemplateValue* find(std::size_t place, std::string_view called) const {
    return arguments.find(place, called);
  }
  [[noreturn]] void wrong(const std::string& what) const {
    work.wrong(std::string(name) + ": " + what);
  }
  [[nodiscard]] std::int64_t integer(std::size_t place, std::string_view called,
                                     std::int64_t fallback) const {
    const TemplateValue* value = find(place, called);
    if (value == nullptr || value->is(Kind::kNone)) {
      return fallback;
    }
    if (!value->is(Kind::kInt) && !value->is(Kind::kBool)) {
      wrong("expected an integer, not a " + std::string(value->kind_name()));
    }
    return value->integer();
  }
  [[nodiscard]] bool flag(std::size_t place, std::string_view called, bool fallback) const {
    const TemplateValue* value = find(place, called);
    return value == nullptr ? fallback : value->truth();
  }
  [[nodiscard]] MarkedText text(std::size_t place, std::string_view called) const {
    const TemplateValue* value = find(place, called);
    return value == nullptr ? MarkedText() : text_of_value(*value, work);
  }
  [[nodiscard]] MarkedText subject_text() const { return text_of_value(subject, work); }
  [[nodiscard]] TemplateValue::List items() const { return elements(subject, work); }
};

TemplateValue made(MarkedText text, TemplateWork& work) {
  work.bytes(text.text.size());
  return TemplateValue(std::move(text));
}
TemplateValue made(TemplateValue::List list, TemplateWork& work) {
  work.bytes(list.size() * sizeof(TemplateValue));
  return TemplateValue(std::move(list));
}
TemplateValue undefined(std::string_view what) {
  return TemplateValue(TemplateValue::Undefined{std::string(what)});
}

/// "a.b": a member's member, or an element's by its number.
TemplateValue member_of(const TemplateValue& value, const TemplateValue& path, const Use& use) {
  if (!path.is(Kind::kText)) {
    return item(value, path, use.work);
  }
  TemplateValue at = value;
  for (const TemplateValue& part : split_text(path.text(), ".", -1, false, use.work)) {
    const std::string& name = part.text().text;
    std::int64_t number = 0;
    const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), number);
    at = error == std::errc() && end == name.data() + name.size()
             ? item(at, TemplateValue(number), use.work)
             : item(at, part, use.work);
  }
  return at;
}

/// Texts compare without case, unless asked for.
TemplateValue sort_key(const TemplateValue& value, bool with_case) {
  return value.is(Kind::kText) && !with_case
             ? TemplateValue(in_case(value.text(), LetterCase::kLower))
             : value;
}

/// What values are compared by: themselves, or a member of theirs.
std::vector<TemplateValue> keys_of(const TemplateValue::List& list, const TemplateValue* path,
                                   bool with_case, const Use& use) {
  std::vector<TemplateValue> keys;
  for (const TemplateValue& value : list) {
    keys.push_back(
        sort_key(path != nullptr && !path->is(Kind::kNone) ? member_of(value, *path, use) : value,
                 with_case));
  }
  use.work.bytes(keys.size() * sizeof(TemplateValue));
  return keys;
}

TemplateValue::List sorted(const TemplateValue::List& list, const std::vector<TemplateValue>& keys,
                           bool reverse, const Use& use) {
  std::vector<std::size_t> order(list.size());
  for (std::size_t i = 0; i < order.size(); ++i) {
    order[i] = i;
  }
  std::ranges::stable_sort(order, [&](std::size_t a, std::size_t b) {
    use.work.steps(1);
    return reverse ? is_less(keys[b], keys[a], use.work) : is_less(keys[a], keys[b], use.work);
  });
  TemplateValue::List out;
  for (const std::size_t i : order) {
    out.push_back(list[i]);
  }
  return out;
}

std::string trimmed_number(const TemplateValue& value) {
  std::string text = stripped(value.text(), Ends::kBoth, std::nullopt).text;
  if (text.starts_with('+')) {
    text.erase(0, 1);
  }
  std::erase(text, '_');
  return text;
}

std::optional<double> parsed_float(const TemplateValue& value) {
  const std::string text = trimmed_number(value);
  double number = 0.0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return !text.empty() && error == std::errc() && end == text.data() + text.size()
             ? std::optional(number)
             : std::nullopt;
}

std::optional<std::int64_t> whole(double number) {
  constexpr double kLimit = 9223372036854775808.0;
  return number >= -kLimit && number < kLimit
             ? std::optional(static_cast<std::int64_t>(std::trunc(number)))
             : std::nullopt;
}

std::optional<std::int64_t> parsed_integer(const TemplateValue& value) {
  const std::string text = trimmed_number(value);
  std::int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (!text.empty() && error == std::errc() && end == text.data() + text.size()) {
    return number;
  }
  const auto real = parsed_float(value);
  return real ? whole(*real) : std::nullopt;
}

// --- Filters
// ---------------------------------------------------------------------------------------

TemplateValue filter_abs(const Use& use) {
  if (!use.subject.is_number()) {
    use.wrong("expected a number, not a " + std::string(use.subject.kind_name()));
  }
  return use.subject.real() < 0
             ? binary("*", TemplateValue(std::int64_t{-1}), use.subject, use.work)
             : binary("*", TemplateValue(std::int64_t{1}), use.subject, use.work);
}
TemplateValue filter_capitalize(const Use& use) {
  return made(capitalized(use.subject_text()), use.work);
}
TemplateValue filter_default(const Use& use) {
  const bool absent =
      use.subject.is(Kind::kUndefined) || (use.flag(1, "boolean", false) && !use.subject.truth());
  const TemplateValue* other = use.find(0, "default_value");
  return !absent ? use.subject : other != nullptr ? *other : TemplateValue(std::string_view());
}
TemplateValue filter_dictsort(const Use& use) {
  if (!use.subject.is(Kind::kDict)) {
    use.wrong("expected a mapping, not a " + std::string(use.subject.kind_name()));
  }
  const bool by_value = use.text(1, "by").text == "value";
  TemplateValue::List pairs;
  std::vector<TemplateValue> keys;
  for (const auto& [key, value] : use.subject.dict()) {
    pairs.push_back(made(TemplateValue::List{TemplateValue(key), value}, use.work));
    keys.push_back(
        sort_key(by_value ? value : TemplateValue(key), use.flag(0, "case_sensitive", false)));
  }
  return made(sorted(pairs, keys, use.flag(2, "reverse", false), use), use.work);
}
TemplateValue filter_first(const Use& use) {
  const TemplateValue::List items = use.items();
  return items.empty() ? undefined("the first of nothing") : items.front();
}
TemplateValue filter_last(const Use& use) {
  const TemplateValue::List items = use.items();
  return items.empty() ? undefined("the last of nothing") : items.back();
}
void require_defined(const Use& use) {
  if (use.subject.is(Kind::kUndefined)) {
    use.work.wrong("\"" + use.subject.undefined_name() + "\" is undefined");
  }
}
TemplateValue filter_float(const Use& use) {
  require_defined(use);
  const TemplateValue* fallback = use.find(0, "default");
  const TemplateValue otherwise = fallback != nullptr ? *fallback : TemplateValue(0.0);
  if (use.subject.is_number()) {
    return TemplateValue(use.subject.real());
  }
  const auto number =
      use.subject.is(Kind::kText) ? parsed_float(use.subject) : std::optional<double>();
  return number ? TemplateValue(*number) : otherwise;
}
TemplateValue filter_int(const Use& use) {
  require_defined(use);
  const TemplateValue* fallback = use.find(0, "default");
  const TemplateValue otherwise = fallback != nullptr ? *fallback : TemplateValue(std::int64_t{0});
  std::optional<std::int64_t> number;
  if (use.subject.is(Kind::kFloat)) {
    number = whole(use.subject.real());
  } else if (use.subject.is_number()) {
    number = use.subject.integer();
  } else if (use.subject.is(Kind::kText)) {
    number = parsed_integer(use.subject);
  }
  return number ? TemplateValue(*number) : otherwise;
}
TemplateValue filter_indent(const Use& use) {
  const TemplateValue* width = use.find(0, "width");
  const MarkedText indent =
      width != nullptr && width->is(Kind::kText)
          ? width->text()
          : MarkedText(std::string(static_cast<std::size_t>(std::clamp<std::int64_t>(
                                       use.integer(0, "width", 4), 0, 1024)),
                                   ' '),
                       false);
  const bool blank = use.flag(2, "blank", false);
  MarkedText out;
  bool first = true;
  MarkedText text = use.subject_text();
  // A line end at the end begins no line that would be indented.
  const bool ended = text.text.ends_with('\n');
  for (const TemplateValue& line : split_lines(text, true, use.work)) {
    const std::string& of = line.text().text;
    const bool is_blank = of == "\n" || of.empty();
    if (first ? use.flag(1, "first", false) : blank || !is_blank) {
      use.work.bytes(indent.text.size());
      out.append(indent);
    }
    out.append(line.text());
    first = false;
  }
  if (ended && blank) {
    out.append(indent);
  }
  return made(std::move(out), use.work);
}
TemplateValue filter_items(const Use& use) {
  TemplateValue::List pairs;
  if (use.subject.is(Kind::kDict)) {
    for (const auto& [key, value] : use.subject.dict()) {
      pairs.push_back(made(TemplateValue::List{TemplateValue(key), value}, use.work));
    }
  } else if (!use.subject.is(Kind::kUndefined)) {
    use.wrong("expected a mapping, not a " + std::string(use.subject.kind_name()));
  }
  return made(std::move(pairs), use.work);
}
TemplateValue filter_join(const Use& use) {
  const MarkedText between = use.text(0, "d");
  const TemplateValue* path = use.find(1, "attribute");
  MarkedText out;
  bool first = true;
  for (const TemplateValue& one : use.items()) {
    if (!first) {
      use.work.bytes(between.text.size());
      out.append(between);
    }
    first = false;
    const MarkedText text =
        text_of_value(path != nullptr ? member_of(one, *path, use) : one, use.work);
    use.work.bytes(text.text.size());
    out.append(text);
  }
  return TemplateValue(std::move(out));
}
TemplateValue filter_length(const Use& use) {
  std::size_t length = 0;
  switch (use.subject.kind()) {
    case Kind::kUndefined:
      break;
    case Kind::kText:
      length = character_offsets(use.subject.text().text).size() - 1;
      use.work.steps(length / 16);
      break;
    case Kind::kList:
      length = use.subject.list().size();
      break;
    case Kind::kDict:
      length = use.subject.dict().size();
      break;
    default:
      use.wrong("a " + std::string(use.subject.kind_name()) + " has no length");
  }
  return TemplateValue(static_cast<std::int64_t>(length));
}
TemplateValue filter_list(const Use& use) { return made(use.items(), use.work); }
TemplateValue filter_lower(const Use& use) {
  return made(in_case(use.subject_text(), LetterCase::kLower), use.work);
}
TemplateValue filter_upper(const Use& use) {
  return made(in_case(use.subject_text(), LetterCase::kUpper), use.work);
}
TemplateValue filter_map(const Use& use) {
  TemplateValue::List out;
  const TemplateValue* path = use.find(kNowhere, "attribute");
  const TemplateValue* fallback = use.find(kNowhere, "default");
  if (path == nullptr &&
      (use.arguments.in_order.empty() || !use.arguments.in_order.front().is(Kind::kText) ||
       !is_template_filter(use.arguments.in_order.front().text().text))) {
    use.wrong("expected attribute=, or the name of a filter");
  }
  TemplateArguments rest = use.arguments;
  if (path == nullptr) {
    rest.in_order.erase(rest.in_order.begin());
  }
  for (const TemplateValue& one : use.items()) {
    use.work.steps(1);
    if (path == nullptr) {
      out.push_back(
          apply_template_filter(use.arguments.in_order.front().text().text, one, rest, use.work));
      continue;
    }
    TemplateValue member = member_of(one, *path, use);
    out.push_back(member.is(Kind::kUndefined) && fallback != nullptr ? *fallback
                                                                     : std::move(member));
  }
  return made(std::move(out), use.work);
}
/// max and min.
TemplateValue filter_extreme(const Use& use) {
  const TemplateValue::List items = use.items();
  const auto keys =
      keys_of(items, use.find(1, "attribute"), use.flag(0, "case_sensitive", false), use);
  std::size_t best = 0;
  for (std::size_t i = 1; i < items.size(); ++i) {
    const bool less = use.name == "min" ? is_less(keys[i], keys[best], use.work)
                                        : is_less(keys[best], keys[i], use.work);
    best = less ? i : best;
  }
  return items.empty() ? undefined("the " + std::string(use.name) + " of nothing") : items[best];
}
/// select, reject, selectattr, rejectattr.
TemplateValue filter_choose(const Use& use) {
  const bool by_member = use.name.ends_with("attr");
  const bool keeps = use.name.starts_with("select");
  TemplateArguments rest = use.arguments;
  TemplateValue path;
  if (by_member) {
    if (rest.in_order.empty()) {
      use.wrong("expected an attribute's name");
    }
    path = rest.in_order.front();
    rest.in_order.erase(rest.in_order.begin());
  }
  std::string test;
  if (!rest.in_order.empty()) {
    test = text_of_value(rest.in_order.front(), use.work).text;
    rest.in_order.erase(rest.in_order.begin());
    if (!is_template_test(test)) {
      use.wrong("the test \"" + test + "\" is not one this program knows");
    }
  }
  TemplateValue::List out;
  for (const TemplateValue& one : use.items()) {
    use.work.steps(1);
    const TemplateValue of = by_member ? member_of(one, path, use) : one;
    const bool passes = test.empty() ? of.truth() : apply_template_test(test, of, rest, use.work);
    if (passes == keeps) {
      out.push_back(one);
    }
  }
  return made(std::move(out), use.work);
}
TemplateValue filter_replace(const Use& use) {
  if (use.find(0, "old") == nullptr || use.find(1, "new") == nullptr) {
    use.wrong("expected what to replace, and what by");
  }
  return TemplateValue(replaced(use.subject_text(), use.text(0, "old").text, use.text(1, "new"),
                                use.integer(2, "count", -1), use.work));
}
TemplateValue filter_reverse(const Use& use) {
  const TemplateValue none((TemplateValue::None()));
  if (use.subject.is(Kind::kText)) {
    return slice(use.subject, none, none, TemplateValue(std::int64_t{-1}), use.work);
  }
  TemplateValue::List items = use.items();
  std::ranges::reverse(items);
  return made(std::move(items), use.work);
}
TemplateValue filter_round(const Use& use) {
  if (!use.subject.is_number()) {
    use.wrong("expected a number, not a " + std::string(use.subject.kind_name()));
  }
  const auto precision =
      static_cast<int>(std::clamp<std::int64_t>(use.integer(0, "precision", 0), -30, 30));
  const std::string method =
      use.find(1, "method") != nullptr ? use.text(1, "method").text : "common";
  const double value = use.subject.real();
  const double scale = std::pow(10.0, precision);
  if (method == "ceil" || method == "floor") {
    return TemplateValue((method == "ceil" ? std::ceil(value * scale) : std::floor(value * scale)) /
                         scale);
  }
  if (method != "common") {
    use.wrong("expected \"common\", \"ceil\" or \"floor\"");
  }
  if (precision < 0 || !std::isfinite(value)) {
    return TemplateValue(std::isfinite(value) ? std::nearbyint(value * scale) / scale : value);
  }
  // Correctly rounded in decimal, as Python's.
  std::array<char, 512> text{};
  const int size = std::snprintf(text.data(), text.size(), "%.*f", precision, value);
  double rounded = value;
  if (size > 0 && static_cast<std::size_t>(size) < text.size()) {
    (void)std::from_chars(text.data(), text.data() + size, rounded);
  }
  return TemplateValue(rounded);
}
TemplateValue filter_safe(const Use& use) { return TemplateValue(use.subject_text()); }
TemplateValue filter_sort(const Use& use) {
  const TemplateValue::List items = use.items();
  const auto keys =
      keys_of(items, use.find(2, "attribute"), use.flag(1, "case_sensitive", false), use);
  return made(sorted(items, keys, use.flag(0, "reverse", false), use), use.work);
}
TemplateValue filter_sum(const Use& use) {
  const TemplateValue* path = use.find(0, "attribute");
  const TemplateValue* start = use.find(1, "start");
  TemplateValue total = start != nullptr ? *start : TemplateValue(std::int64_t{0});
  for (const TemplateValue& one : use.items()) {
    total = binary("+", total,
                   path != nullptr && !path->is(Kind::kNone) ? member_of(one, *path, use) : one,
                   use.work);
  }
  return total;
}
TemplateValue filter_title(const Use& use) {
  return made(titled(use.subject_text(),
                     [](char32_t c) {
                       return c == '-' || c == '(' || c == '{' || c == '[' || c == '<' ||
                              is_space(c);
                     }),
              use.work);
}
TemplateValue filter_tojson(const Use& use) {
  for (const auto& [name, value] : use.arguments.named) {
    if (name != "indent" && !(name == "ensure_ascii" && !value.truth())) {
      use.wrong("the argument " + name + " is not one this program knows");
    }
  }
  const auto indent =
      static_cast<std::size_t>(std::clamp<std::int64_t>(use.integer(kNowhere, "indent", 0), 0, 64));
  return TemplateValue(json_of_value(use.subject, indent, use.work));
}
TemplateValue filter_trim(const Use& use) {
  const TemplateValue* chars = use.find(0, "chars");
  const bool by_chars = chars != nullptr && chars->is(Kind::kText);
  return made(
      stripped(use.subject_text(), Ends::kBoth,
               by_chars ? std::optional<std::string_view>(chars->text().text) : std::nullopt),
      use.work);
}
TemplateValue filter_unique(const Use& use) {
  const TemplateValue::List items = use.items();
  const auto keys =
      keys_of(items, use.find(1, "attribute"), use.flag(0, "case_sensitive", false), use);
  TemplateValue::List out;
  for (std::size_t i = 0; i < items.size(); ++i) {
    use.work.steps(i);
    const auto before = keys.begin() + static_cast<std::ptrdiff_t>(i);
    if (std::none_of(keys.begin(), before,
                     [&](const TemplateValue& key) { return key.equals(keys[i]); })) {
      out.push_back(items[i]);
    }
  }
  return made(std::move(out), use.work);
}

struct Filter {
  std::string_view name;
  TemplateValue (*apply)(const Use&);
};
constexpr Filter kFilters[] = {
    {"abs", filter_abs},           {"capitalize", filter_capitalize},
    {"count", filter_length},      {"d", filter_default},
    {"default", filter_default},   {"dictsort", filter_dictsort},
    {"first", filter_first},       {"float", filter_float},
    {"indent", filter_indent},     {"int", filter_int},
    {"items", filter_items},       {"join", filter_join},
    {"last", filter_last},         {"length", filter_length},
    {"list", filter_list},         {"lower", filter_lower},
    {"map", filter_map},           {"max", filter_extreme},
    {"min", filter_extreme},       {"reject", filter_choose},
    {"rejectattr", filter_choose}, {"replace", filter_replace},
    {"reverse", filter_reverse},   {"round", filter_round},
    {"safe", filter_safe},         {"select", filter_choose},
    {"selectattr", filter_choose}, {"sort", filter_sort},
    {"string", filter_safe},       {"sum", filter_sum},
    {"title", filter_title},       {"tojson", filter_tojson},
    {"trim", filter_trim},         {"unique", filter_unique},
    {"upper", filter_upper},
};

// --- Tests
// -----------------------------------------------------------------------------------------

template <Kind kKind>
bool test_kind(const Use& use) {
  return use.subject.is(kKind);
}
const TemplateValue& operand(const Use& use) {
  if (use.arguments.in_order.empty()) {
    use.wrong("expected something to compare with");
  }
  return use.arguments.in_order.front();
}
bool test_compares(const Use& use) {
  constexpr std::array<std::pair<std::string_view, std::string_view>, 10> kSigns = {
      {{"eq", "=="},
       {"equalto", "=="},
       {"ne", "!="},
       {"gt", ">"},
       {"greaterthan", ">"},
       {"ge", ">="},
       {"lt", "<"},
       {"lessthan", "<"},
       {"le", "<="},
       {"in", "in"}}};
  const auto* const sign =
      std::ranges::find(kSigns, use.name, &std::pair<std::string_view, std::string_view>::first);
  return compare(sign->second, use.subject, operand(use), use.work);
}
bool test_same(const Use& use) {
  const TemplateValue& other = operand(use);
  return use.subject.kind() == other.kind() && use.subject.equals(other);
}
bool test_defined(const Use& use) { return !use.subject.is(Kind::kUndefined); }
bool test_iterable(const Use& use) {
  return use.subject.is(Kind::kText) || use.subject.is(Kind::kList) ||
         use.subject.is(Kind::kDict) || use.subject.is(Kind::kUndefined);
}
bool test_number(const Use& use) { return use.subject.is_number(); }
bool test_true(const Use& use) { return use.subject.is(Kind::kBool) && use.subject.boolean(); }
bool test_false(const Use& use) { return use.subject.is(Kind::kBool) && !use.subject.boolean(); }
bool test_callable(const Use& use) {
  return use.subject.is(Kind::kMacro) || use.subject.is(Kind::kFunction) ||
         use.subject.is(Kind::kUndefined);
}
bool test_divisible(const Use& use) {
  const TemplateValue rest =
      binary("%", use.subject,
             use.name == "divisibleby" ? operand(use) : TemplateValue(std::int64_t{2}), use.work);
  return rest.equals(TemplateValue(std::int64_t{use.name == "odd" ? 1 : 0}));
}
bool test_case(const Use& use) {
  return is_in_case(use.subject_text().text,
                    use.name == "lower" ? LetterCase::kLower : LetterCase::kUpper);
}

struct Test {
  std::string_view name;
  bool (*apply)(const Use&);
};
constexpr Test kTests[] = {
    {"boolean", test_kind<Kind::kBool>},
    {"callable", test_callable},
    {"defined", test_defined},
    {"divisibleby", test_divisible},
    {"eq", test_compares},
    {"equalto", test_compares},
    {"even", test_divisible},
    {"false", test_false},
    {"float", test_kind<Kind::kFloat>},
    {"ge", test_compares},
    {"greaterthan", test_compares},
    {"gt", test_compares},
    {"in", test_compares},
    {"integer", test_kind<Kind::kInt>},
    {"iterable", test_iterable},
    {"le", test_compares},
    {"lessthan", test_compares},
    {"lower", test_case},
    {"lt", test_compares},
    {"mapping", test_kind<Kind::kDict>},
    {"ne", test_compares},
    {"none", test_kind<Kind::kNone>},
    {"number", test_number},
    {"odd", test_divisible},
    {"sameas", test_same},
    {"sequence", test_iterable},
    {"string", test_kind<Kind::kText>},
    {"true", test_true},
    {"undefined", test_kind<Kind::kUndefined>},
    {"upper", test_case},
};

// --- Functions
// -------------------------------------------------------------------------------------

TemplateValue function_range(const Use& use) {
  const auto& given = use.arguments.in_order;
  if (given.empty() || given.size() > 3 || !use.arguments.named.empty()) {
    use.wrong("expected one to three integers");
  }
  const bool one = given.size() == 1;
  std::int64_t at = one ? 0 : use.integer(0, "", 0);
  const std::int64_t end = use.integer(one ? 0 : 1, "", 0);
  const std::int64_t step = use.integer(2, "", 1);
  if (step == 0) {
    use.wrong("a step of zero");
  }
  TemplateValue::List numbers;
  while (step > 0 ? at < end : at > end) {
    use.work.steps(1);
    use.work.bytes(sizeof(TemplateValue));
    numbers.emplace_back(at);
    if (__builtin_add_overflow(at, step, &at)) {
      break;
    }
  }
  return TemplateValue(std::move(numbers));
}
TemplateValue::Dict members_given(const Use& use) {
  TemplateValue::Dict members;
  if (!use.arguments.in_order.empty()) {
    if (use.arguments.in_order.size() > 1 || !use.arguments.in_order.front().is(Kind::kDict)) {
      use.wrong("expected a mapping, or names with values");
    }
    members = use.arguments.in_order.front().dict();
  }
  for (const auto& [name, value] : use.arguments.named) {
    const auto at = std::ranges::find(
        members, name, [](const auto& one) -> const std::string& { return one.first.text; });
    if (at != members.end()) {
      at->second = value;
    } else {
      members.emplace_back(MarkedText(name, false), value);
    }
  }
  use.work.bytes(members.size() * sizeof(TemplateValue::Dict::value_type));
  return members;
}
TemplateValue function_namespace(const Use& use) {
  return TemplateValue(
      std::make_shared<TemplateValue::Namespace>(TemplateValue::Namespace{members_given(use)}));
}
TemplateValue function_dict(const Use& use) { return TemplateValue(members_given(use)); }
TemplateValue function_raise(const Use& use) {
  throw TemplateError(TemplateError::Kind::kRaised, use.text(0, "message").text);
}

struct Function {
  std::string_view name;
  TemplateValue (*call)(const Use&);
};
constexpr Function kFunctions[] = {{"dict", function_dict},
                                   {"namespace", function_namespace},
                                   {"raise_exception", function_raise},
                                   {"range", function_range}};

template <typename Table>
const auto* entry(const Table& table, std::string_view name) {
  const auto at = std::ranges::find_if(table, [&](const auto& one) { return one.name == name; });
  return at != std::end(table) ? &*at : nullptr;
}

}  // namespace

const TemplateValue* TemplateArguments::find(std::size_t place, std::string_view name) const {
  if (place < in_order.size()) {
    return &in_order[place];
  }
  const auto at = std::ranges::find(named, name, &std::pair<std::string, TemplateValue>::first);
  return at != named.end() ? &at->second : nullptr;
}

bool is_template_function(std::string_view name) { return entry(kFunctions, name) != nullptr; }
bool is_template_filter(std::string_view name) { return entry(kFilters, name) != nullptr; }
bool is_template_test(std::string_view name) { return entry(kTests, name) != nullptr; }

TemplateValue call_template_function(std::string_view name, const TemplateArguments& arguments,
                                     TemplateWork& work) {
  const TemplateValue none;
  return entry(kFunctions, name)->call({name, none, arguments, work});
}

TemplateValue apply_template_filter(std::string_view name, const TemplateValue& subject,
                                    const TemplateArguments& arguments, TemplateWork& work) {
  return entry(kFilters, name)->apply({name, subject, arguments, work});
}

bool apply_template_test(std::string_view name, const TemplateValue& subject,
                         const TemplateArguments& arguments, TemplateWork& work) {
  return entry(kTests, name)->apply({name, subject, arguments, work});
}

}  // namespace spel::engine
