// Tokens that were added to a vocabulary: found in the text as it is, before anything else is done
// with it. Internal to engine/text.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/text/tokenizer.h"

namespace spel::engine {

/// Immutable once filled.
class AddedTokens {
 public:
  void add(std::string content, TokenId token);

  struct Match {
    std::size_t begin = 0;
    std::size_t end = 0;
    TokenId token = 0;
  };
  /// The first at or behind `from`, the longest of those that begin together. None has a byte in a
  /// range of `foreign`.
  [[nodiscard]] std::optional<Match> find(std::string_view text, std::size_t from,
                                          std::span<const ByteRange> foreign) const;

 private:
  using Token = std::pair<std::string, TokenId>;

  /// That `text` begins with; nullptr where there is none. Takes the steps of a token's length,
  /// however many tokens there are.
  [[nodiscard]] const Token* longest(std::string_view text) const;

  std::vector<Token> tokens_;  ///< In the order of their bytes.
  std::array<bool, 256> first_bytes_{};
};

}  // namespace spel::engine
