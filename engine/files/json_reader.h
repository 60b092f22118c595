// A strict pull reader for the JSON in model files, which may come from anywhere.
#pragma once

#include <cstddef>
#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace spel::engine {

/// Reads one JSON text from front to back; no tree is built, so memory stays within the text's own
/// size. Every method throws Error(kCorrupt) naming the source, the byte offset, what was expected
/// and what was found. Refused: nesting deeper than kDepthMax, more than kLiveKeysMax keys in open
/// objects, duplicate keys, invalid UTF-8, lone surrogates, control characters in strings, numbers
/// outside JSON's grammar, comments, a byte order mark and anything after the value.
///
/// An object is read as: enter_object(); while (next_key(key)) { read or skip its value }.
/// An array as: enter_array(); while (next_element()) { read or skip the element }.
class JsonReader {
 public:
  static constexpr std::size_t kDepthMax = 32;
  static constexpr std::size_t kLiveKeysMax = 16384;

  enum class Kind { kObject, kArray, kString, kNumber, kBool, kNull };

  /// `text` must outlive the reader; `source` names it in errors.
  JsonReader(std::string_view text, std::string source);

  /// The kind of the value that comes next.
  [[nodiscard]] Kind peek();

  void enter_object();
  [[nodiscard]] bool next_key(std::string& key);
  void enter_array();
  [[nodiscard]] bool next_element();

  [[nodiscard]] std::string read_string();
  /// A number written without fraction, exponent or sign, at most `max`.
  [[nodiscard]] std::uint64_t read_unsigned(std::uint64_t max);
  /// A finite number.
  [[nodiscard]] double read_double();
  [[nodiscard]] bool read_bool();
  void read_null();
  /// Passes over the next value, whatever it is, checking it all the same.
  void skip_value();
  /// Requires that nothing but white space is left.
  void finish();

  /// Throws at the reader's place: for callers that find a well-formed but wrong value.
  [[noreturn]] void fail(const std::string& expected) const;

 private:
  struct Level {
    bool is_object;
    bool is_empty;
    std::set<std::string> keys;
  };

  void skip_space();
  void enter(bool is_object);
  [[nodiscard]] bool next_in_level(char close);
  void read_word(std::string_view word);
  [[nodiscard]] std::string_view read_number_token();
  [[nodiscard]] std::uint32_t read_hex4();
  void read_escape(std::string& out);
  void read_utf8(std::string& out);
  [[nodiscard]] char current() const { return at_ < text_.size() ? text_[at_] : '\0'; }

  std::string_view text_;
  std::string source_;
  std::size_t at_ = 0;
  std::size_t live_keys_ = 0;
  std::vector<Level> levels_;
};

/// `text` as a JSON string with its quotes. `text` must be valid UTF-8.
[[nodiscard]] std::string json_quoted(std::string_view text);

}  // namespace spel::engine
