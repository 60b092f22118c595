// Byte-level byte-pair encoding, as tokenizer.json describes it. Internal to engine/text.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "engine/text/added_tokens.h"
#include "engine/text/byte_pairs.h"
#include "engine/text/split_pattern.h"
#include "engine/text/tokenizer.h"

namespace spel::engine {

/// What a file says of it, checked: every byte has a token, every merge joins two into a third.
struct BpeModel {
  std::vector<std::string> tokens;   ///< [id]; empty where there is none.
  std::vector<bool> special;         ///< [id]
  std::vector<TokenId> byte_tokens;  ///< [256]
  MergeTable merges{0};
  bool whole_words_first = false;    ///< A word that is a token is that token, whatever the merges.
  bool compose = false;              ///< Normalise to NFC.
  std::vector<SplitPattern> splits;  ///< One after another, each on the pieces of the one before.
  AddedTokens added;
  std::vector<TokenId> added_ids;  ///< Of those.
  std::optional<TokenId> bos;
  std::optional<TokenId> eos;
};

[[nodiscard]] std::unique_ptr<Tokenizer> make_bpe_tokenizer(BpeModel model);

}  // namespace spel::engine
