// Speculative rounds whose accepted prefix is decreed instead of earned: the ceiling of a system,
// not a decoder. Both models really run; only the judgement is replaced. Benchmarks and the
// self-test use it, the engine never does.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "engine/model/causal_model.h"

namespace spel::engine::tools {

struct ForcedResult {
  std::vector<TokenId> tokens;  ///< Emitted.
  std::size_t rounds = 0;
  std::size_t proposed = 0;
  std::size_t accepted = 0;
  double seconds = 0.0;

  [[nodiscard]] double alpha() const {
    return proposed == 0 ? 0.0 : static_cast<double>(accepted) / static_cast<double>(proposed);
  }
};

/// One sequence through a target and a draft.
class ForcedRounds {
 public:
  /// The models must outlive this and take rounds of `k` proposals.
  ForcedRounds(CausalModel& target, CausalModel& draft, std::size_t k);

  /// Starts anew: feeds the prompt to both and chooses the first pending token.
  void start(std::span<const TokenId> prompt);

  /// Rounds until `count` more tokens are out. `alpha` of all proposals are accepted, spread evenly
  /// over the rounds.
  [[nodiscard]] ForcedResult run(std::size_t count, double alpha);

  /// A round of `k` proposals of which `accepted` are kept: the step run() is made of.
  void round(std::size_t k, std::size_t accepted);

  [[nodiscard]] const std::vector<TokenId>& tokens() const noexcept { return tokens_; }
  [[nodiscard]] SequenceState& target_state() noexcept { return *target_state_; }
  [[nodiscard]] SequenceState& draft_state() noexcept { return *draft_state_; }

 private:
  void propose(std::size_t k);

  CausalModel& target_;
  CausalModel& draft_;
  std::size_t k_;
  std::unique_ptr<SequenceState> target_state_;
  std::unique_ptr<SequenceState> draft_state_;
  std::vector<TokenId> tokens_;  ///< Prompt and output; the last one is pending.
  std::vector<TokenId> round_;   ///< [k + 1]: pending, proposals.
  std::vector<float> target_logits_;
  std::vector<float> draft_logits_;
};

/// `count` tokens decoded greedily, one pass each, from `pending` on. Returns them.
std::vector<TokenId> decode_plainly(CausalModel& model, SequenceState& state, TokenId pending,
                                    std::size_t count);

}  // namespace spel::engine::tools
