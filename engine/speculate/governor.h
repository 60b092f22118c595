// What a request wants proposed, round by round. How much of it a step grants is the planner's.
#pragma once

#include <cstddef>
#include <memory>

#include "engine/request/request.h"
#include "engine/speculate/acceptance.h"

namespace spel::engine {

/// One per request. Its decisions change speed only, never the output. Not thread-safe.
class Governor {
 public:
  virtual ~Governor() = default;

  struct Wish {
    std::size_t k = 0;   ///< Proposals for the next round, 0 … k of the request.
    bool fixed = false;  ///< Exactly so many, whether they promise to pay or not.
  };
  [[nodiscard]] virtual Wish wish() const = 0;
  /// The chance that proposal `place` is accepted, given that those before it are.
  [[nodiscard]] virtual double chance(std::size_t place) const = 0;
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
/// nothing. adaptive: offers up to k and leaves it to the planner how many pay; when none have for
/// some rounds it suspends and tries one again after a back-off that doubles. `lately`: acceptance
/// of the requests before this one, which an adaptive governor starts from.
[[nodiscard]] std::unique_ptr<Governor> make_governor(const SpeculationParams& params,
                                                      const AcceptanceEstimate& lately);

/// What `lately` starts from.
[[nodiscard]] AcceptanceEstimate unknown_acceptance();

}  // namespace spel::engine
