// Text to token ids, and ids to bytes. Assembling valid UTF-8 from the bytes is the reader's job.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "config/base/byte_range.h"
#include "config/base/error.h"
#include "engine/types.h"

namespace spel::engine {

/// A text has a character without a token.
class NoTokenError : public Error {
 public:
  NoTokenError(std::size_t offset, const std::string& message)
      : Error(ErrorCode::kInvalidArgument, message), offset_(offset) {}

  /// Of the character's first byte.
  [[nodiscard]] std::size_t offset() const noexcept { return offset_; }

 private:
  std::size_t offset_;
};

/// How the tokens that were added to a vocabulary are found in a text: `<|im_end|>`, `<think>`.
struct EncodeOptions {
  bool parse_added = true;  ///< Off: the text is nothing but text.
  /// Parts of the text that somebody else wrote: no added token has a byte there. In order, apart.
  std::span<const ByteRange> foreign = {};
};

/// Immutable, safe from any thread.
class Tokenizer {
 public:
  virtual ~Tokenizer() = default;

  /// Ids are below it; not each of them need be a token.
  [[nodiscard]] virtual std::size_t vocab_size() const = 0;
  /// Throws NoTokenError for the first character that has no token.
  [[nodiscard]] virtual std::vector<TokenId> encode(std::string_view text,
                                                    const EncodeOptions& options) const = 0;
  [[nodiscard]] std::vector<TokenId> encode(std::string_view text) const {
    return encode(text, EncodeOptions());
  }
  /// The bytes of one token, possibly part of a UTF-8 character; none for an id that is not one.
  [[nodiscard]] virtual std::string_view bytes(TokenId token) const = 0;
  [[nodiscard]] virtual bool has_token(TokenId token) const { return !bytes(token).empty(); }
  /// One that structures a text and is not shown as part of it.
  [[nodiscard]] virtual bool is_special(TokenId /*token*/) const { return false; }
  /// The token of exactly these bytes; one that was added goes before others.
  [[nodiscard]] virtual std::optional<TokenId> token_of(std::string_view bytes) const = 0;
  [[nodiscard]] virtual std::optional<TokenId> bos() const = 0;
  /// The token that ends an answer, unless the request ignores it.
  [[nodiscard]] virtual std::optional<TokenId> eos() const = 0;
};

/// Tokens of the ASCII tokenizer.
inline constexpr std::size_t kAsciiTokens = 128;

/// One token per ASCII code: id = code, 0 … 127. No BOS.
[[nodiscard]] std::unique_ptr<Tokenizer> make_ascii_tokenizer(
    std::optional<TokenId> eos = std::nullopt);

/// Tokens given as byte strings; encode() takes the longest match at each place. For tests and for
/// small fixed vocabularies.
[[nodiscard]] std::unique_ptr<Tokenizer> make_list_tokenizer(std::vector<std::string> tokens,
                                                             std::optional<TokenId> eos);

}  // namespace spel::engine
