#include "engine/speculate/acceptance.h"

#include <algorithm>

namespace spel::engine {

AcceptanceEstimate::AcceptanceEstimate(double prior, double prior_weight, double memory)
    : prior_(prior), prior_weight_(prior_weight), decay_(1.0 - 1.0 / memory) {}

void AcceptanceEstimate::observe(std::size_t proposed, std::size_t accepted) {
  // Positions 0 … accepted were reached; all but the last of them surely accepted.
  const std::size_t reached = std::min(proposed, accepted + 1);
  for (std::size_t i = 0; i < reached; ++i) {
    reached_[i] = reached_[i] * decay_ + 1.0;
    accepted_[i] = accepted_[i] * decay_ + (i < accepted ? 1.0 : 0.0);
  }
}

double AcceptanceEstimate::at(std::size_t position) const {
  double estimate = prior_;
  for (std::size_t i = 0; i <= position; ++i) {
    estimate = (accepted_[i] + prior_weight_ * estimate) / (reached_[i] + prior_weight_);
  }
  return estimate;
}

}  // namespace spel::engine
