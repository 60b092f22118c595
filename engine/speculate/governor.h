// Decides, round by round, how many tokens to propose.
#pragma once

#include <array>
#include <cstddef>
#include <memory>

#include "config/base/limits.h"
#include "engine/request.h"
#include "engine/speculate/cost_model.h"

namespace spel::engine {

/// Acceptance by position: the chance that proposal j is accepted, given that those before it
/// were. Older rounds fade. Positions share strength: one not yet reached borrows from the one
/// before it. Not thread-safe.
class AcceptanceEstimate {
 public:
  /// `memory`: rounds after which a round's weight has fallen to 1/e.
  AcceptanceEstimate(double prior, double prior_weight, double memory);

  void observe(std::size_t proposed, std::size_t accepted);
  [[nodiscard]] double at(std::size_t position) const;
  /// Tokens a round of k proposals is expected to emit: 1 + sum of the chances of each prefix.
  [[nodiscard]] double expected_tokens(std::size_t k) const;

 private:
  double prior_;
  double prior_weight_;
  double decay_;
  std::array<double, limits::kSpecKMax> reached_{};
  std::array<double, limits::kSpecKMax> accepted_{};
};

/// What a governor may look at besides its own history.
struct RoundContext {
  const CostModel* costs = nullptr;
  std::size_t sequences = 1;  ///< Decoding together in this step.
};

/// One per request. Its decisions change speed only, never the output. Not thread-safe.
class Governor {
 public:
  virtual ~Governor() = default;

  /// Proposals for the next round, 0 … k of the request.
  [[nodiscard]] virtual std::size_t choose_k(const RoundContext& context) = 0;
  /// After every round, also those without proposals (0, 0).
  virtual void on_round(std::size_t proposed, std::size_t accepted) = 0;

  [[nodiscard]] std::size_t trips() const noexcept { return trips_; }
  [[nodiscard]] std::size_t resumes() const noexcept { return resumes_; }

 protected:
  std::size_t trips_ = 0;
  std::size_t resumes_ = 0;
};

/// off: always k. trip: the document's governor: keeps a rolling accepted/proposed over the window
/// and suspends for the rest of the call when it falls below the threshold, or when a round accepts
/// nothing. adaptive: picks the k with the most expected tokens per second from the measured costs
/// and the estimated acceptance; at 0 it probes again after a back-off that doubles.
[[nodiscard]] std::unique_ptr<Governor> make_governor(const SpeculationParams& params);

}  // namespace spel::engine
