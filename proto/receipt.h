// What every answer says about its own cost: usage, timings, speculation.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "config/json/value.h"
#include "proto/generation.h"

namespace spel::proto {

/// The notes read before one prompt.
struct ReplayReport {
  std::string bank;
  std::size_t tokens = 0;  ///< Of the notes.
  double seconds = 0.0;    ///< Capture of the query and address.
  struct Used {
    std::int64_t id = 0;
    std::uint64_t start = 0;
    double score = 0.0;
  };
  std::vector<Used> notes;  ///< Best first.
};

/// Totals of one HTTP request. Filled from one sequence's statistics; add() joins several.
struct Receipt {
  std::size_t prompt_tokens = 0;
  std::size_t cached_tokens = 0;
  std::size_t normalized_characters = 0;  ///< Of the prompts, replaced before they were read.
  std::size_t completion_tokens = 0;
  std::size_t reasoning_tokens = 0;  ///< Of those, the ones that were thought.
  double prompt_seconds = 0.0;       ///< Leaving the queue to the first token.
  double decode_seconds = 0.0;       ///< First token to last.

  bool draft_enabled = false;
  std::string draft_reason;  ///< Why there was no drafting; empty when there was.
  std::size_t k = 0;
  GovernorKind governor = GovernorKind::kOff;
  std::size_t rounds = 0;
  std::size_t ar_rounds = 0;
  std::size_t proposed = 0;
  std::size_t accepted = 0;
  std::size_t discarded = 0;
  std::vector<std::size_t> accepted_by_position;
  std::size_t trips = 0;
  std::size_t resumes = 0;
  double c = 0.0;
  double v = 0.0;
  double tokens_per_second = 0.0;
  double speedup = 0.0;  ///< Over plain decoding; 0: nothing to compare with yet.

  std::vector<ReplayReport> replays;  ///< One for each prompt, if notes were asked for.
};

/// Joins the statistics of another sequence of the same request: counters add up; k, governor and
/// the measured ratios are means weighted by rounds; times are the longest (sequences run side by
/// side). `new_prompt`: its prompt is not one of those already counted, so its tokens are.
void add(Receipt& total, const Receipt& part, bool new_prompt);

/// A ratio nobody has measured yet is null, not 0.
[[nodiscard]] JsonValue measured(double ratio);

[[nodiscard]] JsonValue usage_json(const Receipt& receipt);
[[nodiscard]] JsonValue timings_json(const Receipt& receipt);
[[nodiscard]] JsonValue speculation_json(const Receipt& receipt);
/// An array, one element for each prompt.
[[nodiscard]] JsonValue replays_json(const Receipt& receipt);

}  // namespace spel::proto
