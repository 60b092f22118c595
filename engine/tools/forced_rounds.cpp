#include "engine/tools/forced_rounds.h"

#include <algorithm>
#include <cmath>

#include "engine/tools/model_rig.h"

namespace spel::engine::tools {
namespace {

/// Feeds a prompt in passes the model can take; the last row's logits go to `logits`.
void prefill(CausalModel& model, SequenceState& state, std::span<const TokenId> tokens,
             float* logits) {
  const std::size_t size = model.max_batch_rows();
  for (std::size_t at = 0; at < tokens.size(); at += size) {
    const auto part = tokens.subspan(at, std::min(size, tokens.size() - at));
    const ForwardItem item{&state, part, false, LogitRows::kLast, logits};
    model.forward({&item, 1});
  }
}

}  // namespace

ForcedRounds::ForcedRounds(CausalModel& target, CausalModel& draft, std::size_t k)
    : target_(target),
      draft_(draft),
      k_(k),
      target_state_(target.make_state()),
      draft_state_(draft.make_state()),
      round_(k + 1),
      target_logits_((k + 1) * target.vocab_size()),
      draft_logits_(draft.vocab_size()) {}

void ForcedRounds::start(std::span<const TokenId> prompt) {
  target_state_->reset();
  draft_state_->reset();
  tokens_.assign(prompt.begin(), prompt.end());
  prefill(target_, *target_state_, prompt, target_logits_.data());
  prefill(draft_, *draft_state_, prompt, draft_logits_.data());
  tokens_.push_back(greedy_choice(std::span(target_logits_).first(target_.vocab_size())));
}

// The first pass also feeds what the draft has missed: the token after a fully accepted round.
void ForcedRounds::propose(std::size_t k) {
  for (std::size_t place = 0; place < k; ++place) {
    const auto fed = place == 0
                         ? std::span<const TokenId>(tokens_).subspan(draft_state_->position())
                         : std::span<const TokenId>(round_).subspan(place, 1);
    const ForwardItem item{draft_state_.get(), fed, false, LogitRows::kLast, draft_logits_.data()};
    draft_.forward({&item, 1});
    round_[place + 1] = greedy_choice(draft_logits_);
  }
}

void ForcedRounds::round(std::size_t k, std::size_t accepted) {
  round_[0] = tokens_.back();
  propose(k);
  const auto fed = std::span<const TokenId>(round_).first(k + 1);
  const ForwardItem item{target_state_.get(), fed, true, LogitRows::kAll, target_logits_.data()};
  target_.forward({&item, 1});
  const auto proposals = round_.begin() + 1;
  tokens_.insert(tokens_.end(), proposals, proposals + static_cast<std::ptrdiff_t>(accepted));
  const std::size_t vocab = target_.vocab_size();
  tokens_.push_back(greedy_choice(std::span(target_logits_).subspan(accepted * vocab, vocab)));
  const std::size_t kept = tokens_.size() - 1;
  target_state_->rollback(target_state_->position() - kept);
  if (draft_state_->position() > kept) {
    draft_state_->rollback(draft_state_->position() - kept);
  }
}

ForcedResult ForcedRounds::run(std::size_t count, double alpha) {
  ForcedResult result;
  const std::size_t first = tokens_.size();
  const auto begin = Clock::now();
  while (tokens_.size() - first < count) {
    const std::size_t k = std::min(k_, count - (tokens_.size() - first) - 1);
    result.proposed += k;
    const auto due =
        static_cast<std::size_t>(std::floor(alpha * static_cast<double>(result.proposed) + 1e-9));
    const std::size_t accepted = std::min(k, due - result.accepted);
    round(k, accepted);
    result.accepted += accepted;
    ++result.rounds;
  }
  result.seconds = seconds_between(begin, Clock::now());
  result.tokens.assign(tokens_.begin() + static_cast<std::ptrdiff_t>(first), tokens_.end());
  return result;
}

std::vector<TokenId> decode_plainly(CausalModel& model, SequenceState& state, TokenId pending,
                                    std::size_t count) {
  std::vector<TokenId> tokens;
  std::vector<float> logits(model.vocab_size());
  for (std::size_t i = 0; i < count; ++i) {
    const ForwardItem item{&state, {&pending, 1}, true, LogitRows::kLast, logits.data()};
    model.forward({&item, 1});
    pending = greedy_choice(logits);
    tokens.push_back(pending);
  }
  return tokens;
}

}  // namespace spel::engine::tools
