#include "engine/text/tokenizer_file.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <unordered_map>
#include <utility>

#include "config/base/error.h"
#include "config/base/limits.h"
#include "config/base/utf8.h"
#include "config/json/file_values.h"
#include "engine/text/bpe_tokenizer.h"

namespace spel::engine {
namespace {

/// GPT-2's, which a ByteLevel step with "use_regex" cuts by.
constexpr const char* kByteLevelPattern =
    R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";

constexpr std::size_t kStepsMax = 16;

[[noreturn]] void refuse(const std::string& why) { throw Error(ErrorCode::kCorrupt, why); }

/// The bytes behind the letters that stand for them: printable ones for themselves, the others for
/// the code points from 256 on, in order.
class ByteLetters {
 public:
  ByteLetters() {
    std::uint16_t next = 256;
    for (unsigned byte = 0; byte < 256; ++byte) {
      const bool printable =
          (byte >= '!' && byte <= '~') || (byte >= 0xA1 && byte <= 0xAC) || byte >= 0xAE;
      const unsigned letter = printable ? byte : next++;
      byte_of_[letter] = static_cast<std::int16_t>(byte);
    }
  }

  /// None if a character is not one of the letters.
  [[nodiscard]] std::optional<std::string> bytes(std::string_view letters) const {
    std::string out;
    while (!letters.empty()) {
      const Utf8Character character = first_utf8_character(letters);
      if (character.kind != Utf8Character::Kind::kValid ||
          character.code_point >= byte_of_.size() || byte_of_[character.code_point] < 0) {
        return std::nullopt;
      }
      out.push_back(static_cast<char>(byte_of_[character.code_point]));
      letters.remove_prefix(character.bytes);
    }
    return out;
  }

 private:
  static constexpr std::size_t kLetters = 256 + 68;
  std::array<std::int16_t, kLetters> byte_of_ = [] {
    std::array<std::int16_t, kLetters> none{};
    none.fill(-1);
    return none;
  }();
};

/// The text of a member; empty where it is null or absent.
std::string text_or_empty(const JsonValue& object, std::string_view key, const std::string& where) {
  const JsonValue* value = object.find(key);
  return value == nullptr || value->is_null() ? std::string()
                                              : text_of(*value, where + "." + std::string(key));
}
bool flag(const JsonValue& object, std::string_view key, const std::string& where,
          bool fallback = false) {
  const JsonValue* value = object.find(key);
  return value == nullptr || value->is_null()
             ? fallback
             : true_or_false(*value, where + "." + std::string(key));
}
const JsonValue& required(const JsonValue& object, std::string_view key, const std::string& where) {
  const JsonValue* value = object.find(key);
  if (value == nullptr) {
    refuse(where + "." + std::string(key) + " is missing");
  }
  return *value;
}
std::string type_of(const JsonValue& object, const std::string& where) {
  return text_of(required(object, "type", where), where + ".type");
}
[[noreturn]] void refuse_type(const JsonValue& object, const std::string& where,
                              const std::string& known) {
  refuse_value(required(object, "type", where), where + ".type",
               known + " (this build implements no other)");
}

/// A pattern that matches `literal` and nothing else.
std::string quoted(std::string_view literal) {
  std::string pattern;
  for (const char c : literal) {
    const auto byte = static_cast<unsigned char>(c);
    const bool letter = (byte >= '0' && byte <= '9') || (byte >= 'A' && byte <= 'Z') ||
                        (byte >= 'a' && byte <= 'z') || byte >= 0x80;
    pattern += letter ? "" : "\\";
    pattern += c;
  }
  return pattern;
}

/// A file being read into a model.
class Reader {
 public:
  Reader(std::string_view text, const std::string& source)
      : source_(source),
        json_(read_file_object(text, source,
                               {.bytes = kTokenizerJsonBytesMax,
                                .values = kValuesMax,
                                .members = limits::kVocabMax,
                                .parts = kValuesMax})) {}

  BpeModel read(const TokenizerConfig& config) {
    read_model();
    read_added();
    for_member("normalizer", [&](const JsonValue& v, const std::string& w) { normalizer(v, w); });
    for_member("pre_tokenizer",
               [&](const JsonValue& v, const std::string& w) { pre_tokenizer(v, w); });
    for_member("post_processor",
               [&](const JsonValue& v, const std::string& w) { post_processor(v, w); });
    for_member("decoder", [&](const JsonValue& v, const std::string& w) { decoder(v, w); });
    for (const TokenId token : normalized_added_) {
      if (model_.compose) {
        refuse(source_ +
               ": added_tokens: " + shown_text(model_.tokens[static_cast<std::size_t>(token)]) +
               " is looked for after normalising, which this build does not do");
      }
    }
    const auto named = [&](const std::optional<std::string>& text, const char* what) {
      std::optional<TokenId> token;
      if (text) {
        const auto at = ids_.find(*text);
        if (at == ids_.end()) {
          refuse(source_ + ": there is no token " + shown_text(*text) + ", the tokenizer's " +
                 what);
        }
        token = at->second;
      }
      return token;
    };
    model_.eos = named(config.eos_token, "eos_token");
    if (config.add_bos_token) {
      model_.bos = named(config.bos_token, "bos_token");
    }
    return std::move(model_);
  }

 private:
  // A name and an id each, two names a merge, and room for the rest.
  static constexpr std::size_t kValuesMax = std::size_t{8} << 20;

  template <typename Take>
  void for_member(std::string_view key, const Take& take) {
    if (!json_.contains(key)) {
      return;
    }
    const JsonValue value = file_member(json_, key, source_);
    if (!value.is_null()) {
      take(value, source_ + ": " + std::string(key));
    }
  }

  void read_model() {
    if (!json_.contains("model")) {
      refuse(source_ + ": model is missing");
    }
    const JsonValue model = file_member(json_, "model", source_);
    const std::string where = source_ + ": model";
    (void)members_of(model, where);
    // Files of old have no type: what has merges is this.
    if (model.contains("type") ? type_of(model, where) != "BPE" : !model.contains("merges")) {
      refuse_type(model, where, "\"BPE\"");
    }
    if (flag(model, "byte_fallback", where)) {
      refuse(where + ".byte_fallback is true; expected false (this build implements no other)");
    }
    for (const char* key : {"continuing_subword_prefix", "end_of_word_suffix"}) {
      if (!text_or_empty(model, key, where).empty()) {
        refuse(where + "." + key + " is set; expected none (this build implements no other)");
      }
    }
    model_.whole_words_first = flag(model, "ignore_merges", where);
    read_vocabulary(required(model, "vocab", where), where + ".vocab");
    read_merges(required(model, "merges", where), where + ".merges");
  }

  void place(TokenId id, std::string bytes, const std::string& where) {
    const auto at = static_cast<std::size_t>(id);
    if (at >= model_.tokens.size()) {
      model_.tokens.resize(at + 1);
    }
    if (!model_.tokens[at].empty() && model_.tokens[at] != bytes) {
      refuse(where + ": the id " + std::to_string(id) + " is given twice");
    }
    model_.tokens[at] = std::move(bytes);
  }

  void read_vocabulary(const JsonValue& vocabulary, const std::string& where) {
    const ByteLetters letters;
    const auto members = members_of(vocabulary, where);
    model_.tokens.resize(members.size());
    pieces_.reserve(members.size());
    for (const JsonValue::Member& member : members) {
      const auto id = static_cast<TokenId>(
          whole_number(member.value, where + "." + shown_text(member.key), limits::kVocabMax - 1));
      std::optional<std::string> bytes = letters.bytes(member.key);
      if (!bytes || bytes->empty()) {
        refuse(where + ": " + shown_text(member.key) +
               " is not spelled in the letters of bytes, which byte-level tokens are");
      }
      place(id, *std::move(bytes), where);
      pieces_.emplace(member.key, id);
    }
    model_.byte_tokens.assign(256, -1);
    for (std::size_t id = 0; id < model_.tokens.size(); ++id) {
      if (model_.tokens[id].size() == 1) {
        model_.byte_tokens[static_cast<unsigned char>(model_.tokens[id].front())] =
            static_cast<TokenId>(id);
      }
      if (!model_.tokens[id].empty()) {
        ids_.emplace(model_.tokens[id], static_cast<TokenId>(id));
      }
    }
    const auto missing = std::ranges::find(model_.byte_tokens, -1);
    if (missing != model_.byte_tokens.end()) {
      refuse(where + " has no token for the byte " +
             std::to_string(missing - model_.byte_tokens.begin()) + "; expected one for each");
    }
  }

  /// The two letters' names of a merge: "a b", or ["a", "b"].
  static std::pair<std::string_view, std::string_view> halves(const JsonValue& merge,
                                                              const std::string& where) {
    if (merge.is_array()) {
      const auto two = elements_of(merge, where, 2);
      if (two.size() != 2) {
        refuse_value(merge, where, "two tokens");
      }
      return {text_of(two[0], where), text_of(two[1], where)};
    }
    const std::string_view text = text_of(merge, where);
    const std::size_t space = text.find(' ');
    if (space == std::string_view::npos || text.find(' ', space + 1) != std::string_view::npos) {
      refuse_value(merge, where, "two tokens with a space between them");
    }
    return {text.substr(0, space), text.substr(space + 1)};
  }

  void read_merges(const JsonValue& list, const std::string& where) {
    const auto merges = elements_of(list, where, kMergesMax);
    model_.merges = MergeTable(merges.size());
    std::string joined;
    for (std::size_t rank = 0; rank < merges.size(); ++rank) {
      const auto place_of = [&] { return where + "[" + std::to_string(rank) + "]"; };
      const auto [left, right] = halves(
          merges[rank], merges[rank].is_array() || merges[rank].is_string() ? where : place_of());
      joined.assign(left);
      joined += right;
      const auto one = pieces_.find(left);
      const auto two = pieces_.find(right);
      const auto both = pieces_.find(std::string_view(joined));
      if (one == pieces_.end() || two == pieces_.end() || both == pieces_.end()) {
        refuse_value(merges[rank], place_of(), "two tokens of the vocabulary that make a third");
      }
      model_.merges.add(one->second, two->second, {static_cast<std::uint32_t>(rank), both->second});
    }
  }

  void read_added() {
    if (!json_.contains("added_tokens")) {
      model_.special.resize(model_.tokens.size());
      return;
    }
    const JsonValue list = file_member(json_, "added_tokens", source_);
    const std::string where = source_ + ": added_tokens";
    std::vector<TokenId> special;
    for (const JsonValue& added : elements_of(list, where, kAddedMax)) {
      const auto id = static_cast<TokenId>(
          whole_number(required(added, "id", where), where + ".id", limits::kVocabMax - 1));
      const std::string content = text_of(required(added, "content", where), where + ".content");
      if (content.empty() || content.size() > kAddedBytesMax) {
        refuse_value(added, where + ".content",
                     "1 to " + std::to_string(kAddedBytesMax) + " bytes");
      }
      for (const char* key : {"single_word", "lstrip", "rstrip"}) {
        if (flag(added, key, where)) {
          refuse(where + ": " + shown_text(content) + " has " + key +
                 ", which this build does not implement");
        }
      }
      // A token that the vocabulary has already may be listed again, under its own id.
      place(id, content, where);
      model_.added.add(content, id);
      model_.added_ids.push_back(id);
      ids_[content] = id;
      if (flag(added, "special", where)) {
        special.push_back(id);
      }
      if (flag(added, "normalized", where)) {
        normalized_added_.push_back(id);
      }
    }
    model_.special.resize(model_.tokens.size());
    for (const TokenId id : special) {
      model_.special[static_cast<std::size_t>(id)] = true;
    }
  }

  /// Calls `one` for each step of a Sequence, or for the step itself.
  template <typename One>
  void each_step(const JsonValue& step, const std::string& where, std::string_view list,
                 const One& one) {
    if (type_of(step, where) != "Sequence") {
      one(step, where);
      return;
    }
    const std::string place = where + "." + std::string(list);
    std::size_t number = 0;
    for (const JsonValue& inner : elements_of(required(step, list, where), place, kStepsMax)) {
      one(inner, place + "[" + std::to_string(number++) + "]");
    }
  }

  void normalizer(const JsonValue& step, const std::string& where) {
    each_step(step, where, "normalizers", [&](const JsonValue& one, const std::string& place) {
      if (type_of(one, place) != "NFC") {
        refuse_type(one, place, "\"NFC\"");
      }
      model_.compose = true;
    });
  }

  void pre_tokenizer(const JsonValue& step, const std::string& where) {
    each_step(step, where, "pretokenizers", [&](const JsonValue& one, const std::string& place) {
      const std::string type = type_of(one, place);
      if (type == "ByteLevel") {
        byte_level(one, place);
        if (flag(one, "use_regex", place, true)) {
          model_.splits.emplace_back(kByteLevelPattern, place);
        }
      } else if (type == "Split") {
        split(one, place);
      } else {
        refuse_type(one, place, R"("Split" or "ByteLevel")");
      }
    });
  }

  static void byte_level(const JsonValue& step, const std::string& where) {
    if (flag(step, "add_prefix_space", where)) {
      refuse(where + ".add_prefix_space is true; expected false (this build implements no other)");
    }
  }

  void split(const JsonValue& step, const std::string& where) {
    if (text_or_empty(step, "behavior", where) != "Isolated" || flag(step, "invert", where)) {
      refuse(where +
             ": expected behavior \"Isolated\", not inverted (this build implements no "
             "other)");
    }
    const JsonValue& pattern = required(step, "pattern", where);
    if (const JsonValue* regex = pattern.find("Regex")) {
      model_.splits.emplace_back(text_of(*regex, where + ".pattern"), where + ".pattern.Regex");
      return;
    }
    const std::string literal = text_or_empty(pattern, "String", where + ".pattern");
    if (literal.empty()) {
      refuse_value(pattern, where + ".pattern", "a Regex, or a String");
    }
    model_.splits.emplace_back(quoted(literal), where + ".pattern.String");
  }

  void post_processor(const JsonValue& step, const std::string& where) {
    each_step(step, where, "processors", [&](const JsonValue& one, const std::string& place) {
      const std::string type = type_of(one, place);
      if (type == "TemplateProcessing") {
        text_frame(required(one, "single", place), place + ".single");
      } else if (type != "ByteLevel") {
        refuse_type(one, place, R"("ByteLevel" or "TemplateProcessing")");
      }
    });
  }

  /// What a template puts around a text: nothing, or one token before it.
  void text_frame(const JsonValue& single, const std::string& where) {
    bool text_came = false;
    for (const JsonValue& item : elements_of(single, where, kStepsMax)) {
      if (item.contains("Sequence")) {
        text_came = true;
        continue;
      }
      const JsonValue& token = required(item, "SpecialToken", where);
      const std::string name = text_of(required(token, "id", where), where + ".id");
      const auto at = ids_.find(name);
      if (text_came || model_.bos || at == ids_.end()) {
        refuse_value(item, where, "at most one token, before the text");
      }
      model_.bos = at->second;
    }
  }

  void decoder(const JsonValue& step, const std::string& where) {
    each_step(step, where, "decoders", [&](const JsonValue& one, const std::string& place) {
      if (type_of(one, place) != "ByteLevel") {
        refuse_type(one, place, "\"ByteLevel\"");
      }
    });
  }

  static constexpr std::size_t kMergesMax = std::size_t{2} << 20;
  static constexpr std::size_t kAddedMax = 1U << 16;
  static constexpr std::size_t kAddedBytesMax = 1024;

  struct Hash {
    using is_transparent = void;
    std::size_t operator()(std::string_view text) const {
      return std::hash<std::string_view>()(text);
    }
  };
  using Ids = std::unordered_map<std::string, TokenId, Hash, std::equal_to<>>;

  std::string source_;
  JsonObject json_;
  BpeModel model_;
  Ids pieces_;  ///< By the letters of the file.
  Ids ids_;     ///< By bytes.
  std::vector<TokenId> normalized_added_;
};

}  // namespace

std::unique_ptr<Tokenizer> read_tokenizer_json(std::string_view text, const std::string& source,
                                               const TokenizerConfig& config) {
  return make_bpe_tokenizer(Reader(text, source).read(config));
}

}  // namespace spel::engine
