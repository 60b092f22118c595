#include "engine/template/lexer.h"

#include <algorithm>
#include <array>
#include <charconv>

#include "config/base/utf8.h"
#include "engine/template/template_error.h"

namespace spel::engine {
namespace {

using Kind = TemplateToken::Kind;

bool is_blank(char c) {
  return c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == '\f' || c == '\v';
}
bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool begins_name(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
bool is_word(char c) { return begins_name(c) || is_digit(c); }

/// What stands at a code point, in UTF-8. Surrogates and what lies beyond Unicode have none.
bool append_code_point(std::uint32_t code, std::string& out) {
  if (code >= 0xD800 && (code <= 0xDFFF || code > 0x10FFFF)) {
    return false;
  }
  if (code < 0x80) {
    out.push_back(static_cast<char>(code));
    return true;
  }
  const int more = code < 0x800 ? 1 : code < 0x10000 ? 2 : 3;
  constexpr std::array<std::uint32_t, 4> kLead = {0, 0xC0, 0xE0, 0xF0};
  out.push_back(static_cast<char>(kLead[static_cast<std::size_t>(more)] | code >> (6 * more)));
  for (int i = more - 1; i >= 0; --i) {
    out.push_back(static_cast<char>(0x80 | (code >> (6 * i) & 0x3F)));
  }
  return true;
}

class Lexer {
 public:
  Lexer(std::string_view source, const std::string& name) : name_(name) {
    // Lines end in \n, whatever they end in; the last end belongs to the file.
    for (std::size_t i = 0; i < source.size(); ++i) {
      if (source[i] == '\r') {
        i += i + 1 < source.size() && source[i + 1] == '\n' ? 1 : 0;
        source_.push_back('\n');
      } else {
        source_.push_back(source[i]);
      }
    }
    if (source_.ends_with('\n')) {
      source_.pop_back();
    }
    rest_ = source_;
  }

  std::vector<TemplateToken> run() {
    while (!rest_.empty()) {
      data();
    }
    add(Kind::kEnd);
    return std::move(tokens_);
  }

 private:
  [[noreturn]] void refuse(const std::string& why) const { refuse_template(name_, place_, why); }

  void skip(std::size_t count) {
    for (const char c : rest_.substr(0, count)) {
      if (c == '\n') {
        ++place_.line;
        place_.column = 1;
      } else if ((static_cast<unsigned char>(c) & 0xC0) != 0x80) {
        ++place_.column;
      }
    }
    rest_.remove_prefix(count);
  }

  void add(Kind kind, std::string text = {}) {
    tokens_.push_back({kind, std::move(text), 0, 0.0, place_});
  }

  static std::size_t tag_in(std::string_view text) {
    for (std::size_t at = text.find('{'); at != std::string_view::npos;
         at = text.find('{', at + 1)) {
      if (at + 1 < text.size() &&
          (text[at + 1] == '{' || text[at + 1] == '%' || text[at + 1] == '#')) {
        return at;
      }
    }
    return text.size();
  }

  /// Text up to the next tag, without what the tag's sign and place take off; then the tag.
  void data() {
    const std::size_t end = tag_in(rest_);
    std::string_view text = rest_.substr(0, end);
    const std::string_view tag = rest_.substr(end);
    const char sign = tag.size() > 2 ? tag[2] : '\0';
    if (sign == '-') {
      while (!text.empty() && is_blank(text.back())) {
        text.remove_suffix(1);
      }
    } else if (!tag.empty() && tag[1] != '{' && sign != '+') {
      text = without_indent(text);
    }
    if (!text.empty()) {
      add(Kind::kData, std::string(text));
    }
    skip(end);
    if (rest_.empty()) {
      return;
    }
    if (rest_[1] == '#') {
      comment();
    } else if (!raw()) {
      const bool block = rest_[1] == '%';
      add(block ? Kind::kBlockBegin : Kind::kPrintBegin);
      skip(rest_.size() > 2 && (rest_[2] == '-' || rest_[2] == '+') ? 3 : 2);
      inside(block);
    }
  }

  /// Without the blanks behind the last line end, if there is nothing else and a line begins there.
  [[nodiscard]] std::string_view without_indent(std::string_view text) const {
    const std::size_t line = text.rfind('\n') + 1;  // 0 where there is none.
    const std::string_view indent = text.substr(line);
    return (line > 0 || line_begins_) && std::ranges::all_of(indent, is_blank)
               ? text.substr(0, line)
               : text;
  }

  /// Behind a tag's sign: what goes with it.
  void after_tag(char sign, bool trims_newline) {
    std::size_t count = 0;
    if (sign == '-') {
      while (count < rest_.size() && is_blank(rest_[count])) {
        ++count;
      }
    } else if (sign != '+' && trims_newline && rest_.starts_with('\n')) {
      count = 1;
    }
    line_begins_ = count > 0 && rest_[count - 1] == '\n';
    skip(count);
  }

  void comment() {
    const std::size_t end = rest_.find("#}", 2);
    if (end == std::string_view::npos) {
      refuse("a comment that does not end");
    }
    const char sign = end > 2 ? rest_[end - 1] : '\0';
    skip(end + 2);
    after_tag(sign, true);
  }

  /// {% NAME %} at the front of `text`: the bytes it takes, and the sign it ends in.
  struct Tag {
    std::size_t bytes = 0;
    char sign = '\0';
  };
  static Tag named_tag(std::string_view text, std::string_view name) {
    if (!text.starts_with("{%")) {
      return {};
    }
    std::size_t at = 2;
    at += at < text.size() && (text[at] == '-' || text[at] == '+') ? 1 : 0;
    while (at < text.size() && is_blank(text[at])) {
      ++at;
    }
    if (!text.substr(at).starts_with(name)) {
      return {};
    }
    at += name.size();
    while (at < text.size() && is_blank(text[at])) {
      ++at;
    }
    char sign = '\0';
    if (at < text.size() && (text[at] == '-' || text[at] == '+')) {
      sign = text[at++];
    }
    return text.substr(at).starts_with("%}") ? Tag{at + 2, sign} : Tag{};
  }

  /// {% raw %} … {% endraw %}
  bool raw() {
    const Tag begin = named_tag(rest_, "raw");
    if (begin.bytes == 0) {
      return false;
    }
    const TemplatePlace opened = place_;
    skip(begin.bytes);
    after_tag(begin.sign, false);
    for (std::size_t at = rest_.find("{%"); at != std::string_view::npos;
         at = rest_.find("{%", at + 1)) {
      const Tag end = named_tag(rest_.substr(at), "endraw");
      if (end.bytes == 0) {
        continue;
      }
      std::string_view text = rest_.substr(0, at);
      if (rest_[at + 2] == '-') {
        while (!text.empty() && is_blank(text.back())) {
          text.remove_suffix(1);
        }
      } else if (rest_[at + 2] != '+') {
        text = without_indent(text);
      }
      if (!text.empty()) {
        add(Kind::kData, std::string(text));
      }
      skip(at + end.bytes);
      after_tag(end.sign, true);
      return true;
    }
    refuse_template(name_, opened, "{% raw %} without {% endraw %}");
  }

  /// The tokens of a tag, and its end.
  void inside(bool block) {
    const TemplatePlace opened = place_;
    const std::string_view close = block ? "%}" : "}}";
    std::size_t braces = 0;
    while (true) {
      while (!rest_.empty() && is_blank(rest_.front())) {
        skip(1);
      }
      if (rest_.empty()) {
        refuse_template(name_, opened, "a tag that does not end");
      }
      const bool signed_end = (rest_.front() == '-' || (block && rest_.front() == '+')) &&
                              rest_.substr(1).starts_with(close);
      // In a print tag a mapping's braces may end in the same two characters.
      if (signed_end || (rest_.starts_with(close) && (block || braces == 0))) {
        const char sign = signed_end ? rest_.front() : '\0';
        add(block ? Kind::kBlockEnd : Kind::kPrintEnd);
        skip(signed_end ? 3 : 2);
        after_tag(sign, block);
        return;
      }
      if (rest_.front() == '{') {
        ++braces;
      } else if (rest_.front() == '}' && braces > 0) {
        --braces;
      }
      token();
    }
  }

  void token() {
    const char c = rest_.front();
    if (begins_name(c)) {
      std::size_t size = 1;
      while (size < rest_.size() && is_word(rest_[size])) {
        ++size;
      }
      add(Kind::kName, std::string(rest_.substr(0, size)));
      skip(size);
    } else if (is_digit(c)) {
      number();
    } else if (c == '\'' || c == '"') {
      text_literal(c);
    } else {
      sign();
    }
  }

  void number() {
    std::string digits;
    std::size_t size = 0;
    bool real = false;
    const auto take_digits = [&] {
      while (size < rest_.size() &&
             (is_digit(rest_[size]) ||
              (rest_[size] == '_' && size + 1 < rest_.size() && is_digit(rest_[size + 1])))) {
        if (rest_[size] != '_') {
          digits.push_back(rest_[size]);
        }
        ++size;
      }
    };
    take_digits();
    if (size + 1 < rest_.size() && rest_[size] == '.' && is_digit(rest_[size + 1])) {
      real = true;
      digits.push_back('.');
      ++size;
      take_digits();
    }
    if (size < rest_.size() && (rest_[size] == 'e' || rest_[size] == 'E')) {
      std::size_t at = size + 1;
      at += at < rest_.size() && (rest_[at] == '+' || rest_[at] == '-') ? 1 : 0;
      if (at < rest_.size() && is_digit(rest_[at])) {
        real = true;
        digits.append(rest_.substr(size, at - size));
        size = at;
        take_digits();
      }
    }
    TemplateToken token{real ? Kind::kFloat : Kind::kInt, digits, 0, 0.0, place_};
    const char* end = digits.data() + digits.size();
    const auto result = real ? std::from_chars(digits.data(), end, token.real)
                             : std::from_chars(digits.data(), end, token.integer);
    if (result.ec != std::errc() || result.ptr != end) {
      refuse("the number " + digits + " is too large");
    }
    tokens_.push_back(std::move(token));
    skip(size);
  }

  void text_literal(char quote) {
    std::string out;
    std::size_t at = 1;
    while (at < rest_.size() && rest_[at] != quote) {
      if (rest_[at] != '\\') {
        out.push_back(rest_[at++]);
      } else {
        at = escape(at + 1, out);
      }
    }
    if (at >= rest_.size()) {
      refuse("a string that does not end");
    }
    add(Kind::kText, std::move(out));
    skip(at + 1);
  }

  /// Behind a backslash; returns where the text goes on.
  std::size_t escape(std::size_t at, std::string& out) {
    if (at >= rest_.size()) {
      refuse("a string that does not end");
    }
    constexpr std::string_view kNames = "abfnrtv\\'\"";
    constexpr std::string_view kMeans = "\a\b\f\n\r\t\v\\'\"";
    const char c = rest_[at];
    if (const std::size_t known = kNames.find(c); known != std::string_view::npos) {
      out.push_back(kMeans[known]);
      return at + 1;
    }
    if (c == '\n') {
      return at + 1;
    }
    const std::size_t digits = c == 'x' ? 2 : c == 'u' ? 4 : c == 'U' ? 8 : 0;
    if (digits > 0) {
      return code_point(at + 1, digits, 16, out);
    }
    if (c >= '0' && c <= '7') {
      std::size_t count = 1;
      while (count < 3 && at + count < rest_.size() && rest_[at + count] >= '0' &&
             rest_[at + count] <= '7') {
        ++count;
      }
      return code_point(at, count, 8, out);
    }
    // As Python: what means nothing stays.
    out.push_back('\\');
    out.push_back(c);
    return at + 1;
  }

  std::size_t code_point(std::size_t at, std::size_t digits, int base, std::string& out) {
    const std::string_view text = rest_.substr(at, digits);
    std::uint32_t code = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), code, base);
    if (text.size() < digits || error != std::errc() || end != text.data() + text.size() ||
        !append_code_point(code, out)) {
      refuse("an escape that names no character");
    }
    return at + digits;
  }

  void sign() {
    for (const std::string_view two : {"==", "!=", ">=", "<=", "//", "**"}) {
      if (rest_.starts_with(two)) {
        add(Kind::kSign, std::string(two));
        skip(2);
        return;
      }
    }
    constexpr std::string_view kSigns = "+-*/%~<>=.:|,()[]{}";
    if (kSigns.find(rest_.front()) == std::string_view::npos) {
      refuse("the character " + std::string(rest_.substr(0, first_utf8_character(rest_).bytes)) +
             " means nothing here");
    }
    add(Kind::kSign, std::string(1, rest_.front()));
    skip(1);
  }

  const std::string& name_;
  std::string source_;
  std::string_view rest_;
  TemplatePlace place_;
  bool line_begins_ = true;  ///< What the last tag took ended a line, or nothing came yet.
  std::vector<TemplateToken> tokens_;
};

}  // namespace

std::vector<TemplateToken> template_tokens(std::string_view source, const std::string& name) {
  return Lexer(source, name).run();
}

void refuse_template(const std::string& name, TemplatePlace place, const std::string& why) {
  throw TemplateSyntaxError(name + ":" + std::to_string(place.line) + ":" +
                            std::to_string(place.column) + ": " + why);
}

}  // namespace spel::engine
