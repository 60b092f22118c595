#include "proto/yaml_subset.h"

#include <algorithm>
#include <cstddef>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "config/base/error.h"

namespace spel::proto {

namespace {

using nlohmann::ordered_json;

struct Line {
  std::size_t number = 0;
  std::size_t indent = 0;
  std::string_view text;  ///< Without indentation and trailing spaces; not empty.
};

[[noreturn]] void fail(std::size_t line, const std::string& problem) {
  throw Error(ErrorCode::kCorrupt, "line " + std::to_string(line) + ": " + problem);
}

std::vector<Line> split_lines(std::string_view text) {
  std::vector<Line> lines;
  for (std::size_t number = 1; !text.empty(); ++number) {
    const auto end = text.find('\n');
    std::string_view line = text.substr(0, end);
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    if (line.find('\t') != std::string_view::npos) {
      fail(number, "a tab");
    }
    line = line.substr(0, line.find_last_not_of(" \r") + 1);
    const auto first = line.find_first_not_of(' ');
    if (first != std::string_view::npos && line[first] != '#') {
      lines.push_back({number, first, line.substr(first)});
    }
  }
  return lines;
}

ordered_json plain_scalar(std::string_view text) {
  if (text == "null" || text == "true" || text == "false") {
    return ordered_json::parse(text);
  }
  const bool numeric = text.find_first_not_of("0123456789+-.eE") == std::string_view::npos;
  if (numeric && ordered_json::accept(text)) {
    return ordered_json::parse(text);
  }
  return std::string(text);
}

/// One value written on one line.
class FlowParser {
 public:
  FlowParser(std::string_view text, std::size_t line) : text_(text), line_(line) {}

  ordered_json parse() {
    ordered_json result = value("");
    skip_spaces();
    if (at_ != text_.size()) {
      fail(line_, "text after a value");
    }
    return result;
  }

 private:
  [[nodiscard]] char peek() const { return at_ < text_.size() ? text_[at_] : '\0'; }

  void skip_spaces() { at_ = std::min(text_.find_first_not_of(' ', at_), text_.size()); }

  bool take(char c) {
    skip_spaces();
    const bool found = peek() == c;
    at_ += found ? 1U : 0U;
    return found;
  }

  void expect(char c) {
    if (!take(c)) {
      fail(line_, std::string("expected ") + c);
    }
  }

  /// `ends`: what ends a plain scalar here.
  ordered_json value(std::string_view ends) {
    skip_spaces();
    switch (peek()) {
      case '{':
        return mapping();
      case '[':
        return sequence();
      case '\'':
        return single_quoted();
      case '"':
        return double_quoted();
      default:
        return plain(ends);
    }
  }

  ordered_json mapping() {
    ordered_json object = ordered_json::object();
    expect('{');
    while (!take('}')) {
      const ordered_json key = value(":,}");
      if (!key.is_string()) {
        fail(line_, "a key that is not a text: " + key.dump());
      }
      expect(':');
      object[key.get<std::string>()] = value(",}");
      if (peek() != '}') {
        expect(',');
      }
    }
    return object;
  }

  ordered_json sequence() {
    ordered_json array = ordered_json::array();
    expect('[');
    while (!take(']')) {
      array.push_back(value(",]"));
      if (peek() != ']') {
        expect(',');
      }
    }
    return array;
  }

  ordered_json single_quoted() {
    std::string text;
    for (++at_; at_ < text_.size(); ++at_) {
      if (text_[at_] == '\'') {
        if (at_ + 1 == text_.size() || text_[at_ + 1] != '\'') {
          ++at_;
          return text;
        }
        ++at_;  // Two quotes are one.
      }
      text += text_[at_];
    }
    fail(line_, "a quote that does not end");
  }

  ordered_json double_quoted() {
    const std::size_t start = at_;
    for (++at_; at_ < text_.size(); ++at_) {
      if (text_[at_] == '\\') {
        ++at_;
      } else if (text_[at_] == '"') {
        ++at_;
        const auto quoted = text_.substr(start, at_ - start);
        if (!ordered_json::accept(quoted)) {
          break;
        }
        return ordered_json::parse(quoted);
      }
    }
    fail(line_, "a quoted text that is not one");
  }

  ordered_json plain(std::string_view ends) {
    std::size_t end = std::min(text_.find_first_of(ends, at_), text_.size());
    std::string_view text = text_.substr(at_, end - at_);
    at_ = end;
    text = text.substr(0, text.find_last_not_of(' ') + 1);
    constexpr std::string_view kIndicators = "&*!|>%@`#";
    if (text.empty() || kIndicators.find(text.front()) != std::string_view::npos ||
        text.find(" #") != std::string_view::npos || text.find(": ") != std::string_view::npos) {
      fail(line_, "a value of a form that is not read here");
    }
    return plain_scalar(text);
  }

  const std::string_view text_;
  const std::size_t line_;
  std::size_t at_ = 0;
};

class BlockParser {
 public:
  explicit BlockParser(std::vector<Line> lines) : lines_(std::move(lines)) {}

  ordered_json parse() {
    if (lines_.empty() || lines_.front().indent != 0) {
      fail(1, "expected a mapping");
    }
    ordered_json root = block(0);
    if (at_ != lines_.size()) {
      fail(lines_[at_].number, "unexpected indentation");
    }
    return root;
  }

 private:
  static bool is_item(const Line& line) { return line.text.rfind("- ", 0) == 0; }

  [[nodiscard]] bool stands_at(std::size_t indent) const {
    return at_ < lines_.size() && lines_[at_].indent == indent;
  }

  ordered_json block(std::size_t indent) {
    return is_item(lines_[at_]) ? sequence(indent) : mapping(indent);
  }

  ordered_json sequence(std::size_t indent) {
    ordered_json array = ordered_json::array();
    while (stands_at(indent) && is_item(lines_[at_])) {
      Line& line = lines_[at_];
      const std::string_view rest = line.text.substr(2);
      if (key_end(rest) == std::string_view::npos) {
        array.push_back(FlowParser(rest, line.number).parse());
        ++at_;
      } else {
        // A mapping whose first member stands on the dash's line.
        line = {line.number, indent + 2, rest};
        array.push_back(mapping(indent + 2));
      }
    }
    return array;
  }

  ordered_json mapping(std::size_t indent) {
    ordered_json object = ordered_json::object();
    while (stands_at(indent) && !is_item(lines_[at_])) {
      const Line line = lines_[at_++];
      const auto end = key_end(line.text);
      if (end == std::string_view::npos) {
        fail(line.number, "expected \"key: value\"");
      }
      const ordered_json key = FlowParser(line.text.substr(0, end), line.number).parse();
      if (!key.is_string() || object.contains(key.get<std::string>())) {
        fail(line.number, "a key that is not a text, or appears twice: " + key.dump());
      }
      const auto start = line.text.find_first_not_of(' ', end + 1);
      const std::string_view rest =
          start == std::string_view::npos ? std::string_view() : line.text.substr(start);
      object[key.get<std::string>()] = member(rest, line);
    }
    return object;
  }

  /// What stands after "key:", on its line or below.
  ordered_json member(std::string_view rest, const Line& line) {
    if (rest == ">-") {
      return folded(line.indent);
    }
    if (!rest.empty()) {
      return FlowParser(rest, line.number).parse();
    }
    if (at_ == lines_.size() || lines_[at_].indent <= line.indent) {
      fail(line.number, "a key without a value");
    }
    return block(lines_[at_].indent);
  }

  ordered_json folded(std::size_t indent) {
    std::string text;
    while (at_ < lines_.size() && lines_[at_].indent > indent) {
      text += (text.empty() ? "" : " ") + std::string(lines_[at_++].text);
    }
    return text;
  }

  /// Where the colon after a leading key stands.
  static std::size_t key_end(std::string_view text) {
    constexpr std::string_view kFlow = "{[";
    if (kFlow.find(text.front()) != std::string_view::npos) {
      return std::string_view::npos;
    }
    std::size_t from = 0;
    const bool quoted = text.front() == '\'' || text.front() == '"';
    if (quoted) {
      // The colon of a quoted key follows its closing quote.
      from = text.find(text.front(), 1);
      if (from == std::string_view::npos || text.substr(from + 1, 1) != ":") {
        return std::string_view::npos;
      }
    }
    const auto colon = text.find(": ", from);
    if (colon != std::string_view::npos) {
      return colon;
    }
    return text.back() == ':' ? text.size() - 1 : std::string_view::npos;
  }

  std::vector<Line> lines_;
  std::size_t at_ = 0;
};

}  // namespace

ordered_json parse_yaml_subset(std::string_view text) {
  return BlockParser(split_lines(text)).parse();
}

}  // namespace spel::proto
