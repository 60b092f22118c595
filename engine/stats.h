// What an engine counts.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "config/base/limits.h"

namespace spel::engine {

/// Monotone since start unless said; one consistent snapshot.
struct EngineStats {
  std::uint64_t requests_submitted = 0;              ///< Accepted into the queue.
  std::uint64_t requests_rejected = 0;               ///< Queue full or draining.
  std::array<std::uint64_t, 5> requests_finished{};  ///< By FinishReason.
  std::size_t running = 0;                           ///< Now.
  std::size_t waiting = 0;                           ///< Now.
  std::uint64_t prompt_tokens = 0;                   ///< Prefilled (cached ones not counted).
  std::uint64_t cached_tokens = 0;
  std::uint64_t generation_tokens = 0;  ///< Emitted, those of cancelled requests included.
  std::uint64_t drafts = 0;             ///< Rounds with proposals.
  std::uint64_t plain_rounds = 0;       ///< Rounds without.
  std::uint64_t draft_tokens = 0;       ///< Proposed.
  std::uint64_t accepted_tokens = 0;    ///< Accepted and emitted.
  std::uint64_t discarded_tokens = 0;   ///< Never judged: the output had ended before them.
  std::array<std::uint64_t, limits::kSpecKMax> accepted_by_position{};
  std::uint64_t trips = 0;
  std::uint64_t resumes = 0;
  std::uint64_t steps = 0;
  double prefill_seconds = 0.0;  ///< Spent in passes, by kind of pass.
  double draft_seconds = 0.0;
  double verify_seconds = 0.0;
  double plain_seconds = 0.0;
  double ar_seconds_per_token = 0.0;  ///< Now: the unit of c and v.
  double c = 0.0;                     ///< Now.
  double v = 0.0;                     ///< Now, at v_tokens tokens a verification.
  std::size_t v_tokens = 0;
  double acceptance = 0.0;         ///< Now, over the last completed rounds.
  double tokens_per_second = 0.0;  ///< Now, over the last seconds of decoding.
  std::size_t state_bytes = 0;     ///< Sequence states and prefix cache, allocated.
  std::size_t prefix_entries = 0;
  std::uint64_t capture_tokens = 0;  ///< Read by captures, outside the batch.
  double capture_seconds = 0.0;
};

}  // namespace spel::engine
