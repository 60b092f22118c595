#include "engine/text/bpe_tokenizer.h"

#include <algorithm>
#include <array>
#include <functional>
#include <memory>
#include <unordered_map>
#include <utf8proc.h>
#include <utility>

#include "config/base/utf8.h"

namespace spel::engine {
namespace {

bool is_ascii(std::string_view text) {
  return std::ranges::all_of(text, [](char c) { return static_cast<unsigned char>(c) < 0x80; });
}

/// Puts each run of combining marks in the order of their classes. utf8proc's own way of doing so
/// takes quadratic time in a run, which a request may make as long as it likes.
void order_marks(std::vector<utf8proc_int32_t>& points) {
  const auto mark_class = [](utf8proc_int32_t point) {
    return utf8proc_get_property(point)->combining_class;
  };
  const auto is_mark = [&](utf8proc_int32_t point) { return mark_class(point) != 0; };
  for (auto at = points.begin(); at != points.end();) {
    const auto begin = std::find_if(at, points.end(), is_mark);
    at = std::find_if_not(begin, points.end(), is_mark);
    if (!std::ranges::is_sorted(begin, at, {}, mark_class)) {
      std::ranges::stable_sort(begin, at, {}, mark_class);
    }
  }
}

/// NFC. `text` is valid UTF-8.
std::string composed(std::string_view text) {
  constexpr auto kForm = static_cast<utf8proc_option_t>(UTF8PROC_STABLE | UTF8PROC_COMPOSE);
  constexpr std::size_t kPartsMax = 4;  // That a character decomposes into, by Unicode's promise.
  std::vector<utf8proc_int32_t> points;
  points.reserve(text.size() + 1);
  for (std::size_t at = 0; at < text.size();) {
    const Utf8Character character = first_utf8_character(text.substr(at));
    std::array<utf8proc_int32_t, kPartsMax> parts{};
    int boundary = 0;
    const auto count = utf8proc_decompose_char(static_cast<utf8proc_int32_t>(character.code_point),
                                               parts.data(), kPartsMax, kForm, &boundary);
    if (count < 0 || static_cast<std::size_t>(count) > kPartsMax) {
      throw Error(ErrorCode::kInvalidArgument,
                  "the character at offset " + std::to_string(at) + " cannot be normalised");
    }
    points.insert(points.end(), parts.begin(), parts.begin() + count);
    at += character.bytes;
  }
  order_marks(points);
  const auto count = static_cast<utf8proc_ssize_t>(points.size());
  points.push_back(0);  // Room for the NUL that it appends.
  const auto size = utf8proc_reencode(points.data(), count, kForm);
  if (size < 0) {
    throw Error(ErrorCode::kInvalidArgument,
                std::string("the text cannot be normalised: ") + utf8proc_errmsg(size));
  }
  return {reinterpret_cast<const char*>(points.data()), static_cast<std::size_t>(size)};
}

void require_utf8(std::string_view text) {
  for (std::size_t at = 0; at < text.size();) {
    const Utf8Character character = first_utf8_character(text.substr(at));
    if (character.kind != Utf8Character::Kind::kValid) {
      throw NoTokenError(at, "the byte at offset " + std::to_string(at) + " is not UTF-8");
    }
    at += character.bytes;
  }
}

class BpeTokenizer final : public Tokenizer {
 public:
  explicit BpeTokenizer(BpeModel model) : model_(std::move(model)) {
    ids_.reserve(model_.tokens.size());
    std::ranges::sort(model_.added_ids);
    for (const TokenId added : model_.added_ids) {
      ids_.emplace(model_.tokens[static_cast<std::size_t>(added)], added);
    }
    for (std::size_t id = 0; id < model_.tokens.size(); ++id) {
      if (!model_.tokens[id].empty()) {
        ids_.emplace(model_.tokens[id], static_cast<TokenId>(id));
      }
    }
  }

  using Tokenizer::encode;
  [[nodiscard]] std::vector<TokenId> encode(std::string_view text,
                                            const EncodeOptions& options) const override {
    require_utf8(text);
    Encoding encoding{{}, {}, {}};
    std::size_t done = 0;
    while (options.parse_added && done < text.size()) {
      const auto found = model_.added.find(text, done, options.foreign);
      if (!found) {
        break;
      }
      encode_plain(text.substr(done, found->begin - done), encoding);
      encoding.ids.push_back(found->token);
      done = found->end;
    }
    encode_plain(text.substr(done), encoding);
    return std::move(encoding.ids);
  }

  [[nodiscard]] std::size_t vocab_size() const override { return model_.tokens.size(); }
  [[nodiscard]] std::string_view bytes(TokenId token) const override {
    return token >= 0 && static_cast<std::size_t>(token) < model_.tokens.size()
               ? std::string_view(model_.tokens[static_cast<std::size_t>(token)])
               : std::string_view();
  }
  [[nodiscard]] bool is_special(TokenId token) const override {
    return token >= 0 && static_cast<std::size_t>(token) < model_.special.size() &&
           model_.special[static_cast<std::size_t>(token)];
  }
  [[nodiscard]] std::optional<TokenId> token_of(std::string_view bytes) const override {
    const auto at = ids_.find(bytes);
    return at != ids_.end() ? std::optional(at->second) : std::nullopt;
  }
  [[nodiscard]] std::optional<TokenId> bos() const override { return model_.bos; }
  [[nodiscard]] std::optional<TokenId> eos() const override { return model_.eos; }

 private:
  /// Enough for most texts; what one of many different words costs has to end somewhere.
  static constexpr std::size_t kWordsKept = 4096;

  /// A word's tokens, among those of the text so far.
  struct Word {
    std::size_t begin = 0;
    std::size_t count = 0;
  };
  struct Encoding {
    std::vector<TokenId> ids;
    WordMerger merger;
    /// Most words of a text come again. The keys' text outlives them: see encode_plain().
    std::unordered_map<std::string_view, Word> words;
  };

  /// Of a part of the text without added tokens.
  void encode_plain(std::string_view text, Encoding& encoding) const {
    if (text.empty()) {
      return;
    }
    std::string normal;
    if (model_.compose && !is_ascii(text)) {
      normal = composed(text);
      text = normal;
    }
    encoding.words.clear();
    split(text, 0, [&](std::string_view word) { encode_word(word, encoding); });
  }

  void split(std::string_view text, std::size_t level,
             const std::function<void(std::string_view)>& word) const {
    if (level == model_.splits.size()) {
      word(text);
      return;
    }
    model_.splits[level].split(text,
                               [&](std::string_view piece) { split(piece, level + 1, word); });
  }

  [[nodiscard]] bool is_added(TokenId token) const {
    return std::ranges::binary_search(model_.added_ids, token);
  }

  void encode_word(std::string_view word, Encoding& encoding) const {
    if (const auto known = encoding.words.find(word); known != encoding.words.end()) {
      for (std::size_t i = 0; i < known->second.count; ++i) {
        encoding.ids.push_back(encoding.ids[known->second.begin + i]);
      }
      return;
    }
    const std::size_t begin = encoding.ids.size();
    const auto whole = model_.whole_words_first ? ids_.find(word) : ids_.end();
    // An added token is found by its own search alone, which knows whose bytes they are.
    if (whole != ids_.end() && !is_added(whole->second)) {
      encoding.ids.push_back(whole->second);
    } else {
      encoding.merger.merge(word, model_.byte_tokens, model_.merges, encoding.ids);
    }
    if (encoding.words.size() < kWordsKept) {
      encoding.words.emplace(word, Word{begin, encoding.ids.size() - begin});
    }
  }

  BpeModel model_;
  std::unordered_map<std::string_view, TokenId> ids_;
};

}  // namespace

std::unique_ptr<Tokenizer> make_bpe_tokenizer(BpeModel model) {
  return std::make_unique<BpeTokenizer>(std::move(model));
}

}  // namespace spel::engine
