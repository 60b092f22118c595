// A model whose output is written down: for tests of everything above a forward pass.
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <vector>

#include "engine/model/causal_model.h"

namespace spel::engine {

/// Chooses the next token from everything fed so far. -1: the logits are no numbers, as those of a
/// broken model.
using NextToken = std::function<TokenId(std::span<const TokenId> history)>;

struct ScriptedModelOptions {
  std::size_t vocab_size = 128;
  std::size_t max_seq = 4096;
  std::size_t max_checkpoints = 17;
  std::size_t max_batch_rows = 512;
  std::chrono::microseconds delay_per_pass{0};  ///< Sleeps, to look like a slow model.
};

/// Logits put ~all probability on next(history); forward() throws what `next` throws.
[[nodiscard]] std::unique_ptr<CausalModel> make_scripted_model(ScriptedModelOptions options,
                                                               NextToken next);

}  // namespace spel::engine
