// States of past sequences, kept so that a request extending one prefills only the rest.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "engine/model/causal_model.h"

namespace spel::engine {

/// A bounded LRU of (tokens, state after exactly those tokens). All states are allocated at
/// construction. A recurrent state cannot be cut shorter, so an entry serves only prompts that
/// begin with all of its tokens. Engine thread only.
class PrefixCache {
 public:
  PrefixCache(const CausalModel& model, std::size_t entries);

  /// The longest entry that `prompt` begins with and that leaves at least one token to feed.
  /// nullptr if there is none. Valid until the next call.
  [[nodiscard]] const SequenceState* find(std::span<const TokenId> prompt);

  /// Keeps a copy of `state`, reached by feeding `tokens`.
  void store_copy(std::span<const TokenId> tokens, const SequenceState& state);
  /// Keeps `state` itself and leaves an unused one in its place: no copy.
  void store_swap(std::span<const TokenId> tokens, std::unique_ptr<SequenceState>& state);

  [[nodiscard]] std::size_t used() const;
  [[nodiscard]] std::size_t bytes() const;

 private:
  struct Entry {
    std::vector<TokenId> tokens;  ///< Empty: unused.
    std::unique_ptr<SequenceState> state;
    std::uint64_t last_use = 0;
  };

  // The entry to overwrite with `tokens`; nullptr if they are too few, or already kept.
  Entry* victim(std::span<const TokenId> tokens);

  std::vector<Entry> entries_;
  std::uint64_t clock_ = 0;
};

}  // namespace spel::engine
