// Coupled sampling: the choice at a position is a pure function of its logits, the history and the
// seed, so draft and target that agree on the logits agree on the token.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "engine/request/request.h"

namespace spel::engine {

/// Uniform in (0, 1), from counters alone: no state to advance, roll back or share.
[[nodiscard]] double counter_uniform(std::uint64_t seed, std::uint64_t position,
                                     std::uint64_t token);

/// Standard Gumbel noise of (seed, position, token).
[[nodiscard]] double gumbel_noise(std::uint64_t seed, std::uint64_t position, std::uint64_t token);

/// Chooses tokens for one sequence. choice at t = argmax_i(logit_i / T + gumbel(seed, t, i)) over
/// the candidates left by the filters (Gumbel-max: exactly a sample of the filtered softmax); T = 0
/// is argmax, lowest id on a tie. Allocates at construction and reset only. Not thread-safe.
class Sampler {
 public:
  explicit Sampler(std::size_t vocab_size);

  /// Starts a new sequence over `prompt`. None of `ends` can be chosen before the output has
  /// `min_tokens` tokens; each is in range.
  void reset(const SamplingParams& params, std::span<const TokenId> prompt,
             std::size_t min_tokens = 0, std::span<const TokenId> ends = {});

  /// The token for absolute position `position`, given that the tokens pushed so far precede it.
  /// Returns -1 if no logit of a token that may be chosen is a number: a broken model, which the
  /// caller must report.
  [[nodiscard]] TokenId choose(std::span<const float> logits, std::size_t position);

  /// Adds a token to the output's history, or takes back the last one (for proposals).
  void push(TokenId token);
  void pop(TokenId token);

 private:
  struct Candidate {
    double score;  ///< Logit after bias and penalties, over the temperature.
    TokenId token;
  };

  void penalise(Candidate& candidate) const;
  void collect_scores(std::span<const float> logits);
  void filter();

  std::size_t vocab_size_;
  SamplingParams params_;
  bool penalties_ = false;
  std::vector<std::uint32_t> output_counts_;  ///< [vocab]
  std::vector<std::uint8_t> in_prompt_;       ///< [vocab]
  std::size_t output_size_ = 0;
  std::size_t min_tokens_ = 0;
  std::vector<TokenId> ends_;          ///< Not to be chosen before min_tokens_.
  std::vector<Candidate> candidates_;  ///< Capacity [vocab].
};

/// Fills `token`'s natural-log probability and the `top` most probable tokens under
/// softmax(logits), most probable first, lowest id on a tie.
void token_logprobs(std::span<const float> logits, TokenId token, std::size_t top, float* logprob,
                    TopLogprobs* top_logprobs);

}  // namespace spel::engine
