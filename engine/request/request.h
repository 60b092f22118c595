// What the engine is asked for, and what it tells back. Native types only: no JSON comes this far.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "config/base/limits.h"
#include "config/base/names.h"
#include "engine/request/shared_tokens.h"
#include "engine/types.h"

namespace spel::engine {

/// A limit on a thought at the output's beginning. Where `tokens_max` tokens of it are out and it
/// has not ended, the tokens of `close` come next, whatever the model says. Counted like any other.
struct ThinkingBudget {
  std::size_t tokens_max = 0;
  std::optional<TokenId> begin;  ///< Begins the thought; none: it has begun in the prompt.
  TokenId end = 0;               ///< Ends it, if it comes before the budget is spent.
  std::vector<TokenId> close;    ///< 1 … limits::kThinkingCloseMax; `end` among them.
};

/// Applied in this order: bias, penalties, temperature, top_k, top_p, min_p.
struct SamplingParams {
  float temperature = 1.0F;         ///< 0: argmax, lowest id on a tie.
  std::int32_t top_k = 0;           ///< 0: off.
  float top_p = 1.0F;               ///< (0, 1]
  float min_p = 0.0F;               ///< [0, 1]
  float repetition_penalty = 1.0F;  ///< 1: off. Over prompt and output.
  float presence_penalty = 0.0F;    ///< Over the output.
  float frequency_penalty = 0.0F;   ///< Over the output.
  std::vector<std::pair<TokenId, float>> logit_bias;
  std::uint64_t seed = 0;  ///< Same seed, same text, whatever the speculation.
  std::optional<ThinkingBudget> thinking;
};

using spel::FinishReason;
using spel::GovernorKind;

struct SpeculationParams {
  bool enabled = true;
  std::size_t k = limits::kSpecKDefault;  ///< Proposals per round; for adaptive the most allowed.
  GovernorKind governor = GovernorKind::kAdaptive;
  double alpha_threshold = 0.35;  ///< trip: suspend below this acceptance …
  std::size_t window = 16;        ///< … over this many rounds.
};

struct GenerationRequest {
  SharedTokens prompt;          ///< Not empty, every id in range: the engine refuses otherwise.
  std::size_t max_tokens = 16;  ///< Also cut where the context ends.
  /// Before so many tokens are out, no token that would end the text can be chosen, and no stop
  /// string is looked for.
  std::size_t min_tokens = 0;
  SamplingParams sampling;
  SpeculationParams speculation;
  std::vector<std::string> stop;  ///< Byte strings; the earliest match ends the text before it.
  std::vector<TokenId> stop_token_ids;
  bool ignore_eos = false;
  std::optional<std::size_t> logprobs;  ///< Alternatives to report with each token, 0 … 20.
  bool prompt_logprobs = false;         ///< The same for the prompt (echo).
  std::optional<Clock::time_point> deadline;
};

struct TokenLogprob {
  TokenId token = 0;
  float logprob = 0.0F;  ///< Natural log, of the model's distribution before any sampling filter.
};

/// The most probable tokens of one place, most probable first. In place: a token allocates nothing.
class TopLogprobs {
 public:
  [[nodiscard]] static constexpr std::size_t capacity() { return limits::kTopLogprobsMax; }
  [[nodiscard]] std::size_t size() const { return size_; }
  [[nodiscard]] const TokenLogprob* begin() const { return entries_.data(); }
  [[nodiscard]] const TokenLogprob* end() const { return entries_.data() + size_; }
  [[nodiscard]] const TokenLogprob& operator[](std::size_t i) const { return entries_[i]; }
  [[nodiscard]] TokenLogprob* begin() { return entries_.data(); }
  [[nodiscard]] TokenLogprob* end() { return entries_.data() + size_; }
  void clear() { size_ = 0; }
  /// Puts `entry` in its place by falling logprob, behind equal ones, and keeps the first `most`.
  /// Precondition: 0 < most <= capacity(), the same in every call since clear().
  void insert(TokenLogprob entry, std::size_t most) {
    if (size_ == most && !(entry.logprob > entries_[size_ - 1].logprob)) {
      return;
    }
    std::size_t place = size_ < most ? size_++ : size_ - 1;
    for (; place > 0 && entry.logprob > entries_[place - 1].logprob; --place) {
      entries_[place] = entries_[place - 1];
    }
    entries_[place] = entry;
  }

 private:
  std::array<TokenLogprob, limits::kTopLogprobsMax> entries_{};
  std::size_t size_ = 0;
};

/// One token of the output, in order.
struct TokenEvent {
  TokenId token = 0;
  /// -1: the target's own choice. >= 0: an accepted proposal and its place in the round.
  std::int32_t draft_position = -1;
  /// Bytes at the end of the output so far that may still turn out to be the start of a stop
  /// string: a reader must not show them yet.
  std::size_t held_bytes = 0;
  float logprob = 0.0F;  ///< Set when logprobs were asked for.
  TopLogprobs top_logprobs;
};

/// Logprobs of the prompt, sent once before the first token when asked for. The first token of a
/// prompt has none.
struct PromptEvent {
  std::vector<TokenLogprob> tokens;       ///< [prompt size]; [0].logprob unset.
  std::vector<TopLogprobs> top_logprobs;  ///< [prompt size]
};

/// What a client may know of an exception that ended its request.
struct Failure {
  bool out_of_memory = false;  ///< The same may work later.
  std::string text;
};
[[nodiscard]] Failure failure_of(const std::exception& error);

/// The receipt: what speculation did for this request. Times from a monotonic clock.
struct GenerationStats {
  std::size_t prompt_tokens = 0;
  std::size_t cached_tokens = 0;      ///< Prompt tokens whose state was reused.
  std::size_t completion_tokens = 0;  ///< Emitted tokens, the one that completed a stop included.
  double queue_seconds = 0.0;
  double prefill_seconds = 0.0;  ///< From leaving the queue to the first token.
  double decode_seconds = 0.0;   ///< From the first token to the last.

  bool draft_enabled = false;
  std::string draft_reason;  ///< Why not, when not: "requested off", "no draft model", …
  std::size_t k = 0;
  GovernorKind governor = GovernorKind::kOff;
  std::size_t rounds = 0;     ///< Target passes with proposals …
  std::size_t ar_rounds = 0;  ///< … and without.
  std::size_t proposed = 0;
  std::size_t accepted = 0;   ///< Proposals that became output.
  std::size_t discarded = 0;  ///< Never judged: the output had ended before them.
  std::vector<std::size_t> accepted_by_position;  ///< [k]
  std::size_t trips = 0;
  std::size_t resumes = 0;
  // Measured on this server's own passes of late, at this request's context; 0: not known.
  double c = 0.0;           ///< Draft forward over AR token.
  double v = 0.0;           ///< (K+1)-token verification over AR token.
  double ar_seconds = 0.0;  ///< One plain token of a lone sequence, the unit of c and v.
  /// Steps from the first token to the last, those of the same step with others included, and what
  /// the same tokens would have taken in the same company had nobody proposed anything. 0: unknown.
  double step_seconds = 0.0;
  double plain_seconds = 0.0;

  [[nodiscard]] double alpha() const {
    return proposed == 0 ? 0.0 : static_cast<double>(accepted) / static_cast<double>(proposed);
  }
  [[nodiscard]] double tokens_per_second() const;
  /// plain_seconds over step_seconds. 0 where there is nothing to compare: no proposals were made,
  /// or what plain decoding takes is not known.
  [[nodiscard]] double speedup() const;
};

/// The last event of every stream.
struct FinishEvent {
  FinishReason reason = FinishReason::kLength;
  std::size_t text_bytes = 0;  ///< The output's length in bytes: what a stop string cut is gone.
  std::string stop_sequence;   ///< The stop string that matched, if one did.
  std::optional<TokenId> stop_token;  ///< The one of stop_token_ids that was chosen, if one was.
  std::string error;                  ///< For kError: safe to show to the client.
  bool out_of_memory = false;         ///< For kError: for want of memory; the same may work later.
  GenerationStats stats;
};

}  // namespace spel::engine
