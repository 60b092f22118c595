#include "engine/text/id_tokenizer.h"

namespace spel::engine {
namespace {

class IdTokenizer final : public Tokenizer {
 public:
  explicit IdTokenizer(std::size_t tokens) : tokens_(tokens) {}

  [[nodiscard]] std::size_t vocab_size() const override { return tokens_; }
  using Tokenizer::encode;
  [[nodiscard]] std::vector<TokenId> encode(std::string_view /*text*/,
                                            const EncodeOptions& /*options*/) const override {
    throw NoTokenizerError();
  }
  /// Of text there is none, but every id may be chosen.
  [[nodiscard]] bool has_token(TokenId token) const override {
    return token >= 0 && static_cast<std::size_t>(token) < tokens_;
  }
  [[nodiscard]] std::optional<TokenId> token_of(std::string_view /*bytes*/) const override {
    return std::nullopt;
  }
  [[nodiscard]] std::string_view bytes(TokenId /*token*/) const override { return {}; }
  [[nodiscard]] std::optional<TokenId> bos() const override { return std::nullopt; }
  [[nodiscard]] std::optional<TokenId> eos() const override { return std::nullopt; }

 private:
  std::size_t tokens_;
};

}  // namespace

NoTokenizerError::NoTokenizerError()
    : Error(ErrorCode::kInvalidArgument,
            "this model has no tokenizer: its directory holds no tokenizer.json; give the prompt "
            "as token ids") {}

std::unique_ptr<Tokenizer> make_id_tokenizer(std::size_t tokens) {
  return std::make_unique<IdTokenizer>(tokens);
}

}  // namespace spel::engine
