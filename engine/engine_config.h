// How an engine is set up.
#pragma once

#include <cstddef>
#include <vector>

#include "config/base/limits.h"
#include "engine/types.h"
#include "kernels/kernels.h"

namespace spel::engine {

struct EngineConfig {
  std::size_t sequences = 8;        ///< Running at once; their state is allocated at start.
  std::size_t queue_capacity = 64;  ///< Waiting beyond those.
  std::size_t prefill_chunk = 128;  ///< Prompt tokens per step, over all sequences.
  std::size_t k_max = limits::kSpecKMax;
  std::size_t prefix_cache_entries = 4;  ///< Sequence states kept for reuse; 0: none.
  bool calibrate = true;                 ///< Measure what passes cost before the first request.
  std::vector<TokenId> end_tokens;       ///< Beside the tokenizer's own; all below the vocabulary.
  const kernels::Kernels* kernels = &kernels::Kernels::select();  ///< What tokens are chosen with.

  /// Token rows of the largest step: what the models' max_batch_rows must hold.
  [[nodiscard]] std::size_t batch_rows() const { return sequences * (k_max + 1) + prefill_chunk; }
};

}  // namespace spel::engine
