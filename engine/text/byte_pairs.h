// Byte-pair encoding of one word. Internal to engine/text.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "engine/types.h"

namespace spel::engine {

/// The merges of a vocabulary by the pair of tokens they join. Immutable once filled.
class MergeTable {
 public:
  struct Merge {
    std::uint32_t rank = 0;  ///< The lowest goes first.
    TokenId token = 0;       ///< What the pair becomes.
  };

  /// Room for `merges`.
  explicit MergeTable(std::size_t merges);

  /// The first of a pair stands.
  void add(TokenId left, TokenId right, Merge merge);
  /// nullptr if the two are never joined.
  [[nodiscard]] const Merge* find(TokenId left, TokenId right) const;

 private:
  struct Slot {
    std::uint64_t pair = kEmpty;
    Merge merge;
  };
  static constexpr std::uint64_t kEmpty = ~std::uint64_t{0};

  static std::uint64_t key(TokenId left, TokenId right);
  [[nodiscard]] std::size_t place(std::uint64_t pair) const;

  std::vector<Slot> slots_;  ///< A power of two, at most half full: open addressing.
};

/// Joins pairs until none is left to join: the lowest rank first, the leftmost of equals. In
/// n log n steps of the word's length. Not thread-safe; keeps its memory from word to word.
class WordMerger {
 public:
  /// Appends the tokens of `word` to `out`. `byte_tokens` are those of single bytes, [256].
  void merge(std::string_view word, const std::vector<TokenId>& byte_tokens,
             const MergeTable& merges, std::vector<TokenId>& out);

 private:
  /// A token of the word, and its neighbours; kNone where there is none.
  struct Symbol {
    TokenId token = 0;
    std::uint32_t before = 0;
    std::uint32_t after = 0;
  };
  /// A pair that could be joined when it was found.
  struct Candidate {
    std::uint32_t rank = 0;
    std::uint32_t left = 0;  ///< Its first symbol.
    std::uint32_t right = 0;
    TokenId left_token = 0;  ///< What they were: one that has changed since is passed over.
    TokenId right_token = 0;
    TokenId joined = 0;
  };
  static constexpr std::uint32_t kNone = ~std::uint32_t{0};
  static constexpr TokenId kJoined = -1;

  void consider(std::uint32_t left, const MergeTable& merges);

  std::vector<Symbol> symbols_;
  std::vector<Candidate> heap_;
};

}  // namespace spel::engine
