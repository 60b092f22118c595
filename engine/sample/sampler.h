// Coupled sampling: the choice at a position is a pure function of its logits, the history and the
// seed, so draft and target that agree on the logits agree on the token.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <span>

#include "engine/request/request.h"
#include "engine/sample/chooser.h"
#include "engine/sample/thinking.h"
#include "engine/sample/token_edits.h"

namespace spel::engine {

/// Chooses tokens for one sequence, as chooser.h defines it, after bias and penalties. Allocates at
/// construction and reset only. Not thread-safe.
class Sampler {
 public:
  /// With a chooser of its own.
  explicit Sampler(std::size_t vocab_size);
  /// Samplers of one thread may share one.
  explicit Sampler(std::shared_ptr<Chooser> chooser);

  /// Starts a new sequence over `prompt`. None of `ends` can be chosen before the output has
  /// `min_tokens` tokens; each is in range. `output_max`: tokens the output may come to, for which
  /// room is made, with that for a round's proposals.
  void reset(const SamplingParams& params, std::span<const TokenId> prompt,
             std::size_t min_tokens = 0, std::span<const TokenId> ends = {},
             std::size_t output_max = 0);

  /// The token for absolute position `position`, given that the tokens pushed so far precede it.
  /// Returns -1 if no logit of a token that may be chosen is a number: a broken model, which the
  /// caller must report. Where forced() has one, it is that, whatever the logits.
  [[nodiscard]] TokenId choose(std::span<const float> logits, std::size_t position);
  /// The next token, where it is not the model's choice: a thought has used up its budget.
  [[nodiscard]] std::optional<TokenId> forced() const { return thinking_.due(output_size_); }

  /// Adds a token to the output's history, or takes back the last one (for proposals).
  void push(TokenId token);
  void pop(TokenId token);

  /// Chooser::logprobs(): of the model's distribution, before bias, penalties and filters.
  void logprobs(std::span<const float> logits, TokenId token, std::size_t top, float* logprob,
                TopLogprobs* top_logprobs) {
    chooser_->logprobs(logits, token, top, logprob, top_logprobs);
  }

 private:
  std::shared_ptr<Chooser> chooser_;
  SamplingParams params_;
  TokenEdits edits_;
  ThinkingClock thinking_;
  std::size_t output_size_ = 0;
  std::size_t min_tokens_ = 0;
};

}  // namespace spel::engine
