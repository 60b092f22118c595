// What passes cost, measured while nobody waits: at start, and now and then when there is nothing
// to do.
#pragma once

#include <chrono>
#include <cstddef>

#include "engine/engine_config.h"
#include "engine/schedule/sequence.h"
#include "engine/speculate/cost_model.h"
#include "engine/speculate/drafter.h"

namespace spel::engine {

/// Engine thread only.
class CostMeter {
 public:
  /// Keeps all of them by reference. `drafter` may be null.
  CostMeter(const EngineConfig& config, CausalModel& target, Drafter* drafter, CostModel& costs)
      : config_(config), target_(target), drafter_(drafter), costs_(costs) {}

  /// Measures passes of all sizes on `scratch`, which serves no request, so that the first receipts
  /// have a unit.
  void calibrate(Sequence& scratch);
  /// Measures one size of pass on `scratch`, if one has not been measured for long, and sets when
  /// the next may be: all of it takes less than a hundredth of a core. Before that it does nothing.
  void measure_idle(Sequence& scratch);
  [[nodiscard]] Clock::time_point next_idle_measurement() const { return next_measurement_; }

 private:
  enum class Side { kTarget, kDraft };

  [[nodiscard]] std::size_t rows_measured(Side side) const;
  [[nodiscard]] double measure(Side side, Sequence& scratch, std::size_t rows,
                               std::chrono::milliseconds warm_up);
  void pass(Side side, Sequence& scratch, std::size_t rows);
  void calibrate(Side side, Sequence& scratch);
  bool measure_stalest(Side side, Sequence& scratch);
  [[nodiscard]] PassCost& cost(Side side) {
    return side == Side::kTarget ? costs_.target : costs_.draft;
  }

  const EngineConfig& config_;
  CausalModel& target_;
  Drafter* drafter_;
  CostModel& costs_;
  Clock::time_point next_measurement_;
};

}  // namespace spel::engine
