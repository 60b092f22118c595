#include "engine/sample/thinking.h"

namespace spel::engine {

void ThinkingClock::reset(const std::optional<ThinkingBudget>& budget) {
  budget_ = budget;
  begun_at_.reset();
  ended_at_.reset();
  if (budget_ && !budget_->begin) {
    begun_at_ = 0;
  }
}

void ThinkingClock::push(TokenId token, std::size_t at) {
  if (!budget_ || ended_at_) {
    return;
  }
  if (!begun_at_) {
    if (token == budget_->begin) {
      begun_at_ = at + 1;
    }
  } else if (token == budget_->end) {
    ended_at_ = at;
  }
}

void ThinkingClock::pop(std::size_t at) {
  if (ended_at_ == at) {
    ended_at_.reset();
  }
  if (begun_at_ == at + 1) {
    begun_at_.reset();
  }
}

std::optional<TokenId> ThinkingClock::due(std::size_t at) const {
  if (!begun_at_) {
    return std::nullopt;
  }
  const std::size_t spent_at = *begun_at_ + budget_->tokens_max;
  const bool ended_before = ended_at_ && *ended_at_ < spent_at;
  if (ended_before || at < spent_at || at - spent_at >= budget_->close.size()) {
    return std::nullopt;
  }
  return budget_->close[at - spent_at];
}

}  // namespace spel::engine
