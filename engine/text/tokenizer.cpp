#include "engine/text/tokenizer.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <utility>

#include "config/base/error.h"

namespace spel::engine {
namespace {

/// Tokens that lie in a table; no BOS.
class TableTokenizer : public Tokenizer {
 public:
  TableTokenizer(std::vector<std::string> tokens, std::optional<TokenId> eos)
      : tokens_(std::move(tokens)), eos_(eos) {}

  [[nodiscard]] std::size_t vocab_size() const override { return tokens_.size(); }
  /// None where the table ends, so that no id reads past it.
  [[nodiscard]] std::string_view bytes(TokenId token) const override {
    return token >= 0 && static_cast<std::size_t>(token) < tokens_.size()
               ? std::string_view(tokens_[static_cast<std::size_t>(token)])
               : std::string_view();
  }
  [[nodiscard]] std::optional<TokenId> token_of(std::string_view bytes) const override {
    const auto at = std::ranges::find(tokens_, bytes);
    return at != tokens_.end() ? std::optional(static_cast<TokenId>(at - tokens_.begin()))
                               : std::nullopt;
  }
  [[nodiscard]] std::optional<TokenId> bos() const override { return std::nullopt; }
  [[nodiscard]] std::optional<TokenId> eos() const override { return eos_; }

 protected:
  [[nodiscard]] const std::vector<std::string>& tokens() const { return tokens_; }

 private:
  std::vector<std::string> tokens_;
  std::optional<TokenId> eos_;
};

std::vector<std::string> ascii_table() {
  std::vector<std::string> tokens;
  tokens.reserve(kAsciiTokens);
  for (std::size_t code = 0; code < kAsciiTokens; ++code) {
    tokens.emplace_back(1, static_cast<char>(code));
  }
  return tokens;
}

class AsciiTokenizer final : public TableTokenizer {
 public:
  explicit AsciiTokenizer(std::optional<TokenId> eos) : TableTokenizer(ascii_table(), eos) {}

  using Tokenizer::encode;
  [[nodiscard]] std::vector<TokenId> encode(std::string_view text,
                                            const EncodeOptions& /*options*/) const override {
    std::vector<TokenId> tokens;
    tokens.reserve(text.size());
    for (std::size_t i = 0; i < text.size(); ++i) {
      const auto code = static_cast<unsigned char>(text[i]);
      if (code >= kAsciiTokens) {
        std::array<char, 8> hex{};
        std::snprintf(hex.data(), hex.size(), "0x%02X", code);
        throw NoTokenError(i, "the byte " + std::string(hex.data()) + " at offset " +
                                  std::to_string(i) +
                                  " has no token: this model reads ASCII (codes 0 to 127) only");
      }
      tokens.push_back(static_cast<TokenId>(code));
    }
    return tokens;
  }
};

class ListTokenizer final : public TableTokenizer {
 public:
  using TableTokenizer::TableTokenizer;

  using Tokenizer::encode;
  [[nodiscard]] std::vector<TokenId> encode(std::string_view text,
                                            const EncodeOptions& /*options*/) const override {
    std::vector<TokenId> ids;
    std::size_t at = 0;
    while (at < text.size()) {
      std::size_t best_length = 0;
      TokenId best = 0;
      for (std::size_t id = 0; id < tokens().size(); ++id) {
        const std::string& token = tokens()[id];
        if (token.size() > best_length && text.substr(at).starts_with(token)) {
          best_length = token.size();
          best = static_cast<TokenId>(id);
        }
      }
      if (best_length == 0) {
        throw NoTokenError(at, "the text at byte offset " + std::to_string(at) + " has no token");
      }
      ids.push_back(best);
      at += best_length;
    }
    return ids;
  }
};

}  // namespace

std::unique_ptr<Tokenizer> make_ascii_tokenizer(std::optional<TokenId> eos) {
  return std::make_unique<AsciiTokenizer>(eos);
}

std::unique_ptr<Tokenizer> make_list_tokenizer(std::vector<std::string> tokens,
                                               std::optional<TokenId> eos) {
  return std::make_unique<ListTokenizer>(std::move(tokens), eos);
}

}  // namespace spel::engine
