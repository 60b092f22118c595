// How likely proposals are to be accepted.
#pragma once

#include <array>
#include <cstddef>

#include "config/base/limits.h"

namespace spel::engine {

/// Acceptance by position: the chance that proposal j is accepted, given that those before it
/// were. Older rounds fade. Positions share strength: one not yet reached borrows from the one
/// before it. Not thread-safe.
class AcceptanceEstimate {
 public:
  /// `prior` is believed at the first position before anything is known and weighs `prior_weight`
  /// rounds; `memory`: rounds after which a round's weight has fallen to 1/e.
  AcceptanceEstimate(double prior, double prior_weight, double memory);

  void observe(std::size_t proposed, std::size_t accepted);
  [[nodiscard]] double at(std::size_t position) const;
  /// Rounds that count, those faded less.
  [[nodiscard]] double rounds() const { return reached_[0]; }

 private:
  double prior_;
  double prior_weight_;
  double decay_;
  std::array<double, limits::kSpecKMax> reached_{};
  std::array<double, limits::kSpecKMax> accepted_{};
};

}  // namespace spel::engine
