#include "engine/template/text_functions.h"

#include <algorithm>
#include <array>
#include <string>
#include <utf8proc.h>

#include "config/base/utf8.h"
#include "engine/template/operators.h"

namespace spel::engine {
namespace {

char32_t code_at(const MarkedText& text, std::size_t at) {
  return first_utf8_character(std::string_view(text.text).substr(at)).code_point;
}

/// The character at [begin, end) in another case, its mark kept.
void append_in_case(const MarkedText& text, std::size_t begin, std::size_t end, LetterCase to,
                    MarkedText& out) {
  const auto code = static_cast<utf8proc_int32_t>(code_at(text, begin));
  const utf8proc_int32_t mapped =
      to == LetterCase::kUpper ? utf8proc_toupper(code) : utf8proc_tolower(code);
  if (mapped == code) {
    out.append(text, begin, end);
    return;
  }
  std::array<utf8proc_uint8_t, 4> bytes{};
  const auto size = utf8proc_encode_char(mapped, bytes.data());
  out.append({reinterpret_cast<const char*>(bytes.data()), static_cast<std::size_t>(size)},
             text.is_foreign(begin));
}

bool contains(std::string_view chars, char32_t c) {
  while (!chars.empty()) {
    const Utf8Character one = first_utf8_character(chars);
    if (one.code_point == c) {
      return true;
    }
    chars.remove_prefix(one.bytes);
  }
  return false;
}

}  // namespace

bool is_space(char32_t c) {
  return (c >= 0x09 && c <= 0x0D) || (c >= 0x1C && c <= 0x20) || c == 0x85 || c == 0xA0 ||
         c == 0x1680 || (c >= 0x2000 && c <= 0x200A) || c == 0x2028 || c == 0x2029 || c == 0x202F ||
         c == 0x205F || c == 0x3000;
}

bool is_letter(char32_t c) {
  const utf8proc_category_t category = utf8proc_category(static_cast<utf8proc_int32_t>(c));
  return category >= UTF8PROC_CATEGORY_LU && category <= UTF8PROC_CATEGORY_LO;
}

MarkedText in_case(const MarkedText& text, LetterCase to) {
  MarkedText out;
  const auto offsets = character_offsets(text.text);
  for (std::size_t i = 0; i + 1 < offsets.size(); ++i) {
    append_in_case(text, offsets[i], offsets[i + 1], to, out);
  }
  return out;
}

MarkedText titled(const MarkedText& text, bool (*begins_after)(char32_t)) {
  MarkedText out;
  const auto offsets = character_offsets(text.text);
  bool begins = true;
  for (std::size_t i = 0; i + 1 < offsets.size(); ++i) {
    append_in_case(text, offsets[i], offsets[i + 1],
                   begins ? LetterCase::kUpper : LetterCase::kLower, out);
    begins = begins_after(code_at(text, offsets[i]));
  }
  return out;
}

MarkedText capitalized(const MarkedText& text) {
  return titled(text, [](char32_t) { return false; });
}

bool is_in_case(std::string_view text, LetterCase wanted) {
  bool any = false;
  while (!text.empty()) {
    const Utf8Character one = first_utf8_character(text);
    const auto category = utf8proc_category(static_cast<utf8proc_int32_t>(one.code_point));
    const bool upper = category == UTF8PROC_CATEGORY_LU || category == UTF8PROC_CATEGORY_LT;
    const bool lower = category == UTF8PROC_CATEGORY_LL;
    if (wanted == LetterCase::kUpper ? lower : upper) {
      return false;
    }
    any = any || upper || lower;
    text.remove_prefix(one.bytes);
  }
  return any;
}

MarkedText stripped(const MarkedText& text, Ends ends,
                    const std::optional<std::string_view>& chars) {
  const auto goes = [&](char32_t c) { return chars ? contains(*chars, c) : is_space(c); };
  const auto offsets = character_offsets(text.text);
  std::size_t first = 0;
  std::size_t last = offsets.size() - 1;
  while (ends != Ends::kRight && first < last && goes(code_at(text, offsets[first]))) {
    ++first;
  }
  while (ends != Ends::kLeft && last > first && goes(code_at(text, offsets[last - 1]))) {
    --last;
  }
  return text.part(offsets[first], offsets[last]);
}

MarkedText replaced(const MarkedText& text, std::string_view from, const MarkedText& to,
                    std::int64_t count, TemplateWork& work) {
  MarkedText out;
  std::size_t done = 0;
  const auto put = [&](std::size_t at) {
    work.bytes(to.text.size());
    out.append(text, done, at);
    out.append(to);
    done = at;
  };
  work.bytes(text.text.size());
  if (from.empty()) {  // Before each character, and at the end.
    for (const std::size_t at : character_offsets(text.text)) {
      if (count-- == 0) {
        break;
      }
      put(at);
    }
  } else {
    for (std::size_t at = text.text.find(from); at != std::string::npos && count-- != 0;
         at = text.text.find(from, done)) {
      put(at);
      done = at + from.size();
    }
  }
  out.append(text, done, text.text.size());
  return out;
}

TemplateValue::List split_text(const MarkedText& text,
                               const std::optional<std::string_view>& separator, std::int64_t count,
                               bool from_right, TemplateWork& work) {
  // Where the separators are.
  std::vector<ByteRange> cuts;
  ByteRange whole{0, text.text.size()};
  if (separator && separator->empty()) {
    work.wrong("a text split by nothing");
  }
  if (separator) {
    for (std::size_t at = text.text.find(*separator); at != std::string::npos;
         at = text.text.find(*separator, at + separator->size())) {
      cuts.push_back({at, at + separator->size()});
    }
  } else {
    const MarkedText inner = stripped(text, Ends::kLeft, std::nullopt);
    whole.begin = text.text.size() - inner.text.size();
    const auto offsets = character_offsets(text.text);
    for (std::size_t i = 0; i + 1 < offsets.size(); ++i) {
      if (offsets[i] < whole.begin || !is_space(code_at(text, offsets[i]))) {
        continue;
      }
      if (!cuts.empty() && cuts.back().end == offsets[i]) {
        cuts.back().end = offsets[i + 1];
      } else {
        cuts.push_back({offsets[i], offsets[i + 1]});
      }
    }
    if (whole.begin == whole.end) {
      return {};
    }
  }
  work.bytes(text.text.size() + cuts.size() * sizeof(TemplateValue));
  work.steps(cuts.size());
  if (count >= 0 && cuts.size() > static_cast<std::size_t>(count)) {
    if (from_right) {
      cuts.erase(cuts.begin(), cuts.end() - static_cast<std::ptrdiff_t>(count));
    } else {
      cuts.resize(static_cast<std::size_t>(count));
    }
  }
  TemplateValue::List parts;
  std::size_t begin = whole.begin;
  for (const ByteRange& cut : cuts) {
    parts.emplace_back(text.part(begin, cut.begin));
    begin = cut.end;
  }
  // Blanks at the end part nothing off.
  if (separator || begin < whole.end) {
    parts.emplace_back(text.part(begin, whole.end));
  }
  return parts;
}

TemplateValue::List split_lines(const MarkedText& text, bool keep_ends, TemplateWork& work) {
  TemplateValue::List lines;
  std::size_t begin = 0;
  const auto offsets = character_offsets(text.text);
  work.bytes(text.text.size());
  for (std::size_t i = 0; i + 1 < offsets.size(); ++i) {
    const char32_t c = code_at(text, offsets[i]);
    const bool ends = (c >= 0x0A && c <= 0x0D) || (c >= 0x1C && c <= 0x1E) || c == 0x85 ||
                      c == 0x2028 || c == 0x2029;
    if (!ends) {
      continue;
    }
    const std::size_t line_end = offsets[i];
    std::size_t end = offsets[i + 1];
    if (c == '\r' && i + 2 < offsets.size() && code_at(text, end) == '\n') {
      end = offsets[++i + 1];
    }
    lines.emplace_back(text.part(begin, keep_ends ? end : line_end));
    begin = end;
  }
  if (begin < text.text.size()) {
    lines.emplace_back(text.part(begin, text.text.size()));
  }
  work.bytes(lines.size() * sizeof(TemplateValue));
  return lines;
}

}  // namespace spel::engine
