#include "engine/template/operators.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <limits>
#include <optional>
#include <string>

#include "config/base/utf8.h"

namespace spel::engine {
namespace {

using Kind = TemplateValue::Kind;

/// What a list's place or a mapping's member weighs beside its text.
constexpr std::size_t kElementBytes = 48;

std::string quoted_kind(const TemplateValue& value) {
  return value.is(Kind::kUndefined) ? "\"" + value.undefined_name() + "\", which is undefined"
                                    : "a " + std::string(value.kind_name());
}

/// repr(float): the shortest digits that read back, an exponent below 1e-4 and from 1e16.
std::string float_text(double value) {
  if (std::isnan(value)) {
    return "nan";
  }
  if (std::isinf(value)) {
    return value < 0 ? "-inf" : "inf";
  }
  std::array<char, 64> buffer{};
  const auto [end, error] = std::to_chars(buffer.data(), buffer.data() + buffer.size(), value,
                                          std::chars_format::scientific);
  const std::string text(buffer.data(), error == std::errc() ? end : buffer.data());
  const std::size_t mark = text.find('e');
  std::string digits = text.substr(0, mark);
  const std::string sign = digits.starts_with('-') ? "-" : "";
  std::erase_if(digits, [](char c) { return c == '-' || c == '.'; });
  int exponent = 0;
  const char* from = text.data() + mark + 1 + (text[mark + 1] == '+' ? 1 : 0);
  (void)std::from_chars(from, text.data() + text.size(), exponent);
  if (exponent < -4 || exponent >= 16) {
    std::string out = sign + digits.substr(0, 1);
    out += digits.size() > 1 ? "." + digits.substr(1) : "";
    const std::string power = std::to_string(std::abs(exponent));
    return out + (exponent < 0 ? "e-" : "e+") + (power.size() < 2 ? "0" : "") + power;
  }
  if (exponent < 0) {
    return sign + "0." + std::string(static_cast<std::size_t>(-exponent - 1), '0') + digits;
  }
  const auto whole = static_cast<std::size_t>(exponent) + 1;
  if (digits.size() <= whole) {
    return sign + digits + std::string(whole - digits.size(), '0') + ".0";
  }
  return sign + digits.substr(0, whole) + "." + digits.substr(whole);
}

void append_hex(MarkedText& out, const char* prefix, unsigned value, int digits, bool foreign) {
  std::array<char, 16> text{};
  std::snprintf(text.data(), text.size(), "%s%0*x", prefix, digits, value);
  out.append(text.data(), foreign);
}

/// Escapes one byte of `text` that needs it in `out`; false if it may stand as it is.
using Escape = bool (*)(unsigned char byte, bool foreign, char quote, MarkedText& out);

bool json_escape(unsigned char byte, bool foreign, char /*quote*/, MarkedText& out) {
  constexpr std::string_view kPlain = "\"\\\n\r\t\b\f";
  constexpr std::string_view kNames = "\"\\nrtbf";
  if (const std::size_t at = kPlain.find(static_cast<char>(byte)); at != std::string_view::npos) {
    out.append(std::string{'\\', kNames[at]}, foreign);
    return true;
  }
  if (byte < 0x20) {
    append_hex(out, "\\u", byte, 4, foreign);
    return true;
  }
  return false;
}

bool repr_escape(unsigned char byte, bool foreign, char quote, MarkedText& out) {
  constexpr std::string_view kPlain = "\\\n\r\t";
  constexpr std::string_view kNames = "\\nrt";
  if (const std::size_t at = kPlain.find(static_cast<char>(byte)); at != std::string_view::npos) {
    out.append(std::string{'\\', kNames[at]}, foreign);
    return true;
  }
  if (byte == static_cast<unsigned char>(quote)) {
    out.append(std::string{'\\', quote}, foreign);
    return true;
  }
  if (byte < 0x20 || byte == 0x7F) {
    append_hex(out, "\\x", byte, 2, foreign);
    return true;
  }
  return false;
}

void append_quoted(const MarkedText& text, char quote, Escape escape, MarkedText& out,
                   TemplateWork& work) {
  work.bytes(text.text.size() + 2);
  out.append(std::string(1, quote), false);
  std::size_t plain = 0;
  for (std::size_t i = 0; i < text.text.size(); ++i) {
    MarkedText escaped;
    if (escape(static_cast<unsigned char>(text.text[i]), text.is_foreign(i), quote, escaped)) {
      out.append(text, plain, i);
      out.append(escaped);
      work.bytes(escaped.text.size());
      plain = i + 1;
    }
  }
  out.append(text, plain, text.text.size());
  out.append(std::string(1, quote), false);
}

void append_scalar(const TemplateValue& value, bool json, MarkedText& out, TemplateWork& work) {
  switch (value.kind()) {
    case Kind::kUndefined:
      if (json) {
        work.wrong(quoted_kind(value) + " is no JSON");
      }
      out.append("Undefined", false);
      return;
    case Kind::kNone:
      out.append(json ? "null" : "None", false);
      return;
    case Kind::kBool:
      out.append(value.boolean() ? (json ? "true" : "True") : (json ? "false" : "False"), false);
      return;
    case Kind::kInt:
      out.append(std::to_string(value.integer()), false);
      return;
    case Kind::kFloat:
      out.append(json && !std::isfinite(value.real()) ? (std::isnan(value.real()) ? "NaN"
                                                         : value.real() < 0       ? "-Infinity"
                                                                                  : "Infinity")
                                                      : float_text(value.real()),
                 false);
      return;
    default:
      work.wrong(quoted_kind(value) + " has no text here");
  }
}

/// How the elements of a list or a mapping follow each other.
struct Layout {
  bool json = false;
  std::size_t indent = 0;
};

void append_value(const TemplateValue& value, const Layout& layout, std::size_t level,
                  MarkedText& out, TemplateWork& work);

template <typename Items, typename One>
void append_items(char open, char close, const Items& items, const Layout& layout,
                  std::size_t level, MarkedText& out, TemplateWork& work, const One& one) {
  out.append(std::string(1, open), false);
  const auto new_line = [&](std::size_t depth) {
    if (layout.indent > 0) {
      work.bytes(layout.indent * depth + 1);
      out.append("\n" + std::string(layout.indent * depth, ' '), false);
    }
  };
  bool first = true;
  for (const auto& each : items) {
    work.steps(1);
    if (!first) {
      out.append(layout.indent > 0 ? "," : ", ", false);
    }
    first = false;
    new_line(level + 1);
    one(each);
  }
  if (!first) {
    new_line(level);
  }
  out.append(std::string(1, close), false);
}

void append_value(const TemplateValue& value, const Layout& layout, std::size_t level,
                  MarkedText& out, TemplateWork& work) {
  constexpr std::size_t kLevelsMax = 200;
  if (level > kLevelsMax) {
    work.wrong("a value nested more than " + std::to_string(kLevelsMax) + " deep");
  }
  const auto quoted = [&](const MarkedText& text) {
    if (layout.json) {
      append_quoted(text, '"', json_escape, out, work);
      return;
    }
    const bool doubled =
        text.text.find('\'') != std::string::npos && text.text.find('"') == std::string::npos;
    append_quoted(text, doubled ? '"' : '\'', repr_escape, out, work);
  };
  if (value.is(Kind::kText)) {
    quoted(value.text());
  } else if (value.is(Kind::kList)) {
    append_items('[', ']', value.list(), layout, level, out, work, [&](const TemplateValue& each) {
      append_value(each, layout, level + 1, out, work);
    });
  } else if (value.is(Kind::kDict)) {
    append_items('{', '}', value.dict(), layout, level, out, work, [&](const auto& member) {
      quoted(member.first);
      out.append(": ", false);
      append_value(member.second, layout, level + 1, out, work);
    });
  } else {
    append_scalar(value, layout.json, out, work);
    work.bytes(32);
  }
}

// --- Arithmetic
// ------------------------------------------------------------------------------------

[[noreturn]] void no_operation(std::string_view sign, const TemplateValue& a,
                               const TemplateValue& b, TemplateWork& work) {
  work.wrong("\"" + std::string(sign) + "\" of " + quoted_kind(a) + " and " + quoted_kind(b));
}

std::int64_t floor_divide(std::int64_t a, std::int64_t b) {
  const std::int64_t quotient = a / b;
  return a % b != 0 && (a < 0) != (b < 0) ? quotient - 1 : quotient;
}

double float_modulo(double a, double b) {
  const double rest = std::fmod(a, b);
  return rest != 0.0 && (b < 0.0) != (rest < 0.0) ? rest + b
                                                  : std::copysign(rest, rest == 0.0 ? b : rest);
}

TemplateValue integer_operation(std::string_view sign, std::int64_t a, std::int64_t b,
                                TemplateWork& work) {
  std::int64_t result = 0;
  bool overflow = false;
  if (sign == "+") {
    overflow = __builtin_add_overflow(a, b, &result);
  } else if (sign == "-") {
    overflow = __builtin_sub_overflow(a, b, &result);
  } else if (sign == "*") {
    overflow = __builtin_mul_overflow(a, b, &result);
  } else if (sign == "**") {
    if (b < 0) {
      if (a == 0) {
        work.wrong("zero to a negative power");
      }
      return TemplateValue(std::pow(static_cast<double>(a), static_cast<double>(b)));
    }
    result = 1;
    for (std::int64_t i = 0; i < b && !overflow; ++i) {
      if (result == 0 || (a == 1 || a == -1)) {
        result = a == -1 && b % 2 != 0 ? -1 : a == 0 ? 0 : 1;
        break;
      }
      overflow = __builtin_mul_overflow(result, a, &result);
    }
  } else {
    if (b == 0) {
      work.wrong("division by zero");
    }
    if (b == -1 && a == std::numeric_limits<std::int64_t>::min()) {
      overflow = sign != "%";
    } else {
      const std::int64_t quotient = floor_divide(a, b);
      result = sign == "//" ? quotient : a - quotient * b;
    }
  }
  if (overflow) {
    work.wrong("an integer beyond 64 bits");
  }
  return TemplateValue(result);
}

TemplateValue float_operation(std::string_view sign, double a, double b, TemplateWork& work) {
  if (sign == "+") {
    return TemplateValue(a + b);
  }
  if (sign == "-") {
    return TemplateValue(a - b);
  }
  if (sign == "*") {
    return TemplateValue(a * b);
  }
  if (sign == "**") {
    const double power = std::pow(a, b);
    if ((a == 0.0 && b < 0.0) || (std::isfinite(a) && std::isfinite(b) && !std::isfinite(power))) {
      work.wrong("a power that is no number");
    }
    return TemplateValue(power);
  }
  if (b == 0.0) {
    work.wrong("division by zero");
  }
  if (sign == "/") {
    return TemplateValue(a / b);
  }
  const double rest = float_modulo(a, b);
  return TemplateValue(sign == "%" ? rest : std::floor((a - rest) / b + 0.5));
}

TemplateValue repeated(const TemplateValue& value, std::int64_t count, TemplateWork& work) {
  const auto times = static_cast<std::size_t>(std::max<std::int64_t>(count, 0));
  const std::size_t size =
      value.is(Kind::kText) ? value.text().text.size() : value.list().size() * kElementBytes;
  constexpr std::size_t kMost = std::size_t{1} << 40;
  work.bytes(size > 0 && times > kMost / size ? kMost : size * times);
  if (value.is(Kind::kText)) {
    MarkedText out;
    for (std::size_t i = 0; i < times && size > 0; ++i) {
      out.append(value.text());
    }
    return TemplateValue(std::move(out));
  }
  TemplateValue::List out;
  for (std::size_t i = 0; i < times && size > 0; ++i) {
    out.insert(out.end(), value.list().begin(), value.list().end());
  }
  return TemplateValue(std::move(out));
}

/// A place in a sequence of `size`; none if it lies outside.
std::optional<std::size_t> place_of(const TemplateValue& index, std::size_t size) {
  if (!index.is(Kind::kInt) && !index.is(Kind::kBool)) {
    return std::nullopt;
  }
  std::int64_t at = index.integer();
  at += at < 0 ? static_cast<std::int64_t>(size) : 0;
  return at >= 0 && at < static_cast<std::int64_t>(size)
             ? std::optional(static_cast<std::size_t>(at))
             : std::nullopt;
}

/// The places of [begin:end:step] in a sequence of `size`, in order.
std::vector<std::size_t> slice_places(const TemplateValue& begin, const TemplateValue& end,
                                      const TemplateValue& step_value, std::size_t size,
                                      TemplateWork& work) {
  const auto number = [&](const TemplateValue& value) -> std::optional<std::int64_t> {
    if (value.is(Kind::kNone)) {
      return std::nullopt;
    }
    if (!value.is(Kind::kInt) && !value.is(Kind::kBool)) {
      work.wrong("a slice by " + quoted_kind(value));
    }
    return value.integer();
  };
  const auto length = static_cast<std::int64_t>(size);
  const std::int64_t step = number(step_value).value_or(1);
  if (step == 0) {
    work.wrong("a slice with a step of zero");
  }
  const std::int64_t low = step < 0 ? -1 : 0;
  const std::int64_t high = step < 0 ? length - 1 : length;
  const auto bound = [&](std::optional<std::int64_t> wanted, std::int64_t fallback) {
    if (!wanted) {
      return fallback;
    }
    const std::int64_t at = *wanted < 0 ? *wanted + length : *wanted;
    return std::clamp(at, low, high);
  };
  const std::int64_t from = bound(number(begin), step < 0 ? high : low);
  const std::int64_t to = bound(number(end), step < 0 ? low : high);
  std::vector<std::size_t> places;
  for (std::int64_t at = from; step < 0 ? at > to : at < to;) {
    places.push_back(static_cast<std::size_t>(at));
    if (step < 0 ? at < std::numeric_limits<std::int64_t>::min() - step
                 : at > std::numeric_limits<std::int64_t>::max() - step) {
      break;
    }
    at += step;
  }
  work.steps(places.size());
  return places;
}

}  // namespace

MarkedText text_of_value(const TemplateValue& value, TemplateWork& work) {
  if (value.is(Kind::kUndefined)) {
    return {};
  }
  if (value.is(Kind::kText)) {
    return value.text();
  }
  MarkedText out;
  append_value(value, {}, 0, out, work);
  return out;
}

MarkedText json_of_value(const TemplateValue& value, std::size_t indent, TemplateWork& work) {
  MarkedText out;
  append_value(value, {.json = true, .indent = indent}, 0, out, work);
  return out;
}

TemplateValue binary(std::string_view sign, const TemplateValue& a, const TemplateValue& b,
                     TemplateWork& work) {
  if (a.is_number() && b.is_number()) {
    return a.is(Kind::kFloat) || b.is(Kind::kFloat) || sign == "/"
               ? float_operation(sign, a.real(), b.real(), work)
               : integer_operation(sign, a.integer(), b.integer(), work);
  }
  if (sign == "+" && a.is(Kind::kText) && b.is(Kind::kText)) {
    work.bytes(a.text().text.size() + b.text().text.size());
    MarkedText out = a.text();
    out.append(b.text());
    return TemplateValue(std::move(out));
  }
  if (sign == "+" && a.is(Kind::kList) && b.is(Kind::kList)) {
    work.bytes((a.list().size() + b.list().size()) * kElementBytes);
    TemplateValue::List out = a.list();
    out.insert(out.end(), b.list().begin(), b.list().end());
    return TemplateValue(std::move(out));
  }
  const auto repeats = [](const TemplateValue& what, const TemplateValue& times) {
    return (what.is(Kind::kText) || what.is(Kind::kList)) &&
           (times.is(Kind::kInt) || times.is(Kind::kBool));
  };
  if (sign == "*" && repeats(a, b)) {
    return repeated(a, b.integer(), work);
  }
  if (sign == "*" && repeats(b, a)) {
    return repeated(b, a.integer(), work);
  }
  no_operation(sign, a, b, work);
}

bool is_less(const TemplateValue& a, const TemplateValue& b, TemplateWork& work) {
  if (a.is_number() && b.is_number()) {
    return a.is(Kind::kFloat) || b.is(Kind::kFloat) ? a.real() < b.real()
                                                    : a.integer() < b.integer();
  }
  if (a.is(Kind::kText) && b.is(Kind::kText)) {
    return a.text().text < b.text().text;  // UTF-8 orders as code points do.
  }
  if (a.is(Kind::kList) && b.is(Kind::kList)) {
    for (std::size_t i = 0; i < std::min(a.list().size(), b.list().size()); ++i) {
      work.steps(1);
      if (!a.list()[i].equals(b.list()[i])) {
        return is_less(a.list()[i], b.list()[i], work);
      }
    }
    return a.list().size() < b.list().size();
  }
  no_operation("<", a, b, work);
}

bool compare(std::string_view sign, const TemplateValue& a, const TemplateValue& b,
             TemplateWork& work) {
  if (sign == "==") {
    return a.equals(b);
  }
  if (sign == "!=") {
    return !a.equals(b);
  }
  if (sign == "<") {
    return is_less(a, b, work);
  }
  if (sign == ">") {
    return is_less(b, a, work);
  }
  if (sign == "<=") {
    return is_less(a, b, work) || a.equals(b);
  }
  if (sign == ">=") {
    return is_less(b, a, work) || a.equals(b);
  }
  bool found = false;
  if (b.is(Kind::kText)) {
    if (!a.is(Kind::kText)) {
      work.wrong(quoted_kind(a) + " in a string");
    }
    work.steps(b.text().text.size() / 64);
    found = b.text().text.find(a.text().text) != std::string::npos;
  } else if (b.is(Kind::kDict)) {
    found = a.is(Kind::kText) && find_member(b.dict(), a.text().text) != nullptr;
    work.steps(b.dict().size());
  } else if (b.is(Kind::kList)) {
    work.steps(b.list().size());
    found = std::ranges::any_of(b.list(), [&](const auto& each) { return a.equals(each); });
  } else if (!b.is(Kind::kUndefined)) {
    work.wrong("\"in\" of " + quoted_kind(b));
  }
  return found == (sign == "in");
}

std::vector<std::size_t> character_offsets(std::string_view text) {
  std::vector<std::size_t> offsets;
  for (std::size_t at = 0; at < text.size(); at += first_utf8_character(text.substr(at)).bytes) {
    offsets.push_back(at);
  }
  offsets.push_back(text.size());
  return offsets;
}

TemplateValue::List elements(const TemplateValue& value, TemplateWork& work) {
  TemplateValue::List out;
  switch (value.kind()) {
    case Kind::kUndefined:
      return out;
    case Kind::kList:
      work.steps(value.list().size());
      return value.list();
    case Kind::kDict:
      work.bytes(value.dict().size() * kElementBytes);
      for (const auto& member : value.dict()) {
        out.emplace_back(member.first);
      }
      return out;
    case Kind::kText: {
      const auto offsets = character_offsets(value.text().text);
      work.bytes(offsets.size() * kElementBytes);
      for (std::size_t i = 0; i + 1 < offsets.size(); ++i) {
        out.emplace_back(value.text().part(offsets[i], offsets[i + 1]));
      }
      return out;
    }
    default:
      work.wrong(quoted_kind(value) + " cannot be gone through");
  }
}

TemplateValue item(const TemplateValue& object, const TemplateValue& index, TemplateWork& work) {
  switch (object.kind()) {
    case Kind::kUndefined:
      work.wrong("\"" + object.undefined_name() + "\" is undefined");
    case Kind::kList: {
      const auto place = place_of(index, object.list().size());
      return place ? object.list()[*place] : TemplateValue();
    }
    case Kind::kText: {
      const auto offsets = character_offsets(object.text().text);
      work.steps(offsets.size());
      const auto place = place_of(index, offsets.size() - 1);
      return place ? TemplateValue(object.text().part(offsets[*place], offsets[*place + 1]))
                   : TemplateValue();
    }
    default:
      return index.is(Kind::kText) ? attribute(object, index.text().text, work) : TemplateValue();
  }
}

TemplateValue attribute(const TemplateValue& object, std::string_view name, TemplateWork& work) {
  const TemplateValue* found = nullptr;
  if (object.is(Kind::kUndefined)) {
    work.wrong("\"" + object.undefined_name() + "\" is undefined");
  }
  if (object.is(Kind::kDict)) {
    work.steps(object.dict().size());
    found = find_member(object.dict(), name);
  } else if (object.is(Kind::kNamespace)) {
    found = find_member(object.names().members, name);
  }
  return found != nullptr ? *found : TemplateValue(TemplateValue::Undefined{std::string(name)});
}

TemplateValue slice(const TemplateValue& object, const TemplateValue& begin,
                    const TemplateValue& end, const TemplateValue& step, TemplateWork& work) {
  if (object.is(Kind::kText)) {
    const auto offsets = character_offsets(object.text().text);
    work.bytes(object.text().text.size());
    MarkedText out;
    for (const std::size_t at : slice_places(begin, end, step, offsets.size() - 1, work)) {
      out.append(object.text(), offsets[at], offsets[at + 1]);
    }
    return TemplateValue(std::move(out));
  }
  if (object.is(Kind::kList)) {
    TemplateValue::List out;
    for (const std::size_t at : slice_places(begin, end, step, object.list().size(), work)) {
      out.push_back(object.list()[at]);
    }
    work.bytes(out.size() * kElementBytes);
    return TemplateValue(std::move(out));
  }
  if (object.is(Kind::kUndefined)) {
    work.wrong("\"" + object.undefined_name() + "\" is undefined");
  }
  work.wrong("a slice of " + quoted_kind(object));
}

}  // namespace spel::engine
