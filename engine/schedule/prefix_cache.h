// States of past sequences, kept so that a request extending one prefills only the rest, and one
// that repeats a prompt nothing at all.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "engine/model/causal_model.h"

namespace spel::engine {

/// A bounded LRU of (tokens, state after exactly those tokens, and for prompts the logits there).
/// All memory is allocated at construction. A recurrent state cannot be cut shorter, so an entry
/// serves only prompts that begin with all of its tokens. Engine thread only.
class PrefixCache {
 public:
  PrefixCache(const CausalModel& model, std::size_t entries);

  struct Hit {
    const SequenceState* state = nullptr;  ///< nullptr: there is none.
    std::span<const float> logits;  ///< After the whole prompt; empty if some is left to feed.
  };

  /// The longest entry that `prompt` begins with; all of it only if its logits are there too. Valid
  /// until the next call.
  [[nodiscard]] Hit find(std::span<const TokenId> prompt);

  /// Keeps copies of `state`, reached by feeding `tokens`, and of the last one's `logits`, [vocab].
  void store_copy(std::span<const TokenId> tokens, const SequenceState& state,
                  std::span<const float> logits);
  /// Keeps `state` itself and leaves an unused one in its place: no copy.
  void store_swap(std::span<const TokenId> tokens, std::unique_ptr<SequenceState>& state);

  [[nodiscard]] std::size_t used() const;
  [[nodiscard]] std::size_t bytes() const;

 private:
  struct Entry {
    std::vector<TokenId> tokens;  ///< Empty: unused.
    std::unique_ptr<SequenceState> state;
    std::vector<float> logits;  ///< [vocab], or empty.
    std::uint64_t last_use = 0;
  };

  // The entry that keeps `tokens` from now on; nullptr if they are too few. `is_new`: its state is
  // of others.
  Entry* place_for(std::span<const TokenId> tokens, bool& is_new);

  std::vector<Entry> entries_;
  std::uint64_t clock_ = 0;
};

}  // namespace spel::engine
