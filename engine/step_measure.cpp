// What passes cost, measured while nobody waits: at start, and now and then when there is nothing
// to do.
#include <algorithm>
#include <array>

#include "engine/step.h"

namespace spel::engine {
namespace {

constexpr std::size_t kTargetRowsMax = 65;
constexpr std::size_t kDraftRowsMax = 17;
constexpr std::size_t kCalibrationRuns = 5;
// A measurement younger than this is good enough while there is nothing to do.
constexpr std::chrono::seconds kFresh{20};
constexpr std::chrono::seconds kLookAgain{1};
// Idle time per measured time.
constexpr double kIdleFactor = 100.0;

}  // namespace

std::size_t Stepper::rows_measured(const CausalModel& model) const {
  return std::min(
      {&model == draft_ ? kDraftRowsMax : kTargetRowsMax, model.max_batch_rows(), model.max_seq()});
}

double Stepper::measure(CausalModel& model, SequenceState& state, std::size_t rows, float* logits) {
  static constexpr std::array<TokenId, kTargetRowsMax> kTokens{};
  state.reset();
  const bool round = rows <= config_.k_max + 1;
  const ForwardItem item{&state, std::span(kTokens).first(rows), round, LogitRows::kLast, logits};
  const PassClock clock;
  model.forward({&item, 1});
  const double seconds = clock.seconds();
  state.reset();
  return seconds;
}

void Stepper::calibrate(CausalModel& model, SequenceState& state, float* logits, PassCost& cost) {
  const std::size_t rows_max = rows_measured(model);
  std::array<std::array<double, kCalibrationRuns>, PassCost::kRows.size()> seconds{};
  // The first pass also touches the weights' pages: not a measurement.
  (void)measure(model, state, 1, logits);
  // Interleaved, so that a neighbour's burst does not fall on one row count alone.
  for (std::size_t run = 0; run < kCalibrationRuns; ++run) {
    for (std::size_t i = 0; i < PassCost::kRows.size() && PassCost::kRows[i] <= rows_max; ++i) {
      seconds[i][run] = measure(model, state, PassCost::kRows[i], logits);
    }
  }
  for (std::size_t i = 0; i < PassCost::kRows.size() && PassCost::kRows[i] <= rows_max; ++i) {
    auto& runs = seconds[i];
    std::sort(runs.begin(), runs.end());
    // The fastest: nothing but the work itself is always in a measurement.
    const double spread = runs[kCalibrationRuns / 2] / runs[0] - 1.0;
    cost.calibrate(PassCost::kRows[i], runs[0], spread, Clock::now());
  }
}

void Stepper::calibrate(Sequence& scratch) {
  calibrate(target_, *scratch.target_state, scratch.target_logits.data(), costs_.target);
  if (draft_ != nullptr) {
    calibrate(*draft_, *scratch.draft_state, scratch.draft_logits.data(), costs_.draft);
  }
}

// False: everything was measured of late.
bool Stepper::measure_stalest(CausalModel& model, SequenceState& state, float* logits,
                              PassCost& cost) {
  const std::size_t rows_max = rows_measured(model);
  const auto rows = cost.stalest(rows_max, Clock::now() - kFresh);
  if (!rows) {
    return false;
  }
  // An idle machine is cold: the first pass warms caches and clocks.
  (void)measure(model, state, *rows, logits);
  const double seconds = measure(model, state, *rows, logits);
  cost.observe({static_cast<double>(*rows), 0.0}, seconds, Clock::now());
  return true;
}

void Stepper::measure_idle(Sequence& scratch) {
  const auto begin = Clock::now();
  if (begin < next_measurement_) {
    return;
  }
  next_measurement_ = begin + kLookAgain;  // However this one ends.
  const bool measured =
      measure_stalest(target_, *scratch.target_state, scratch.target_logits.data(),
                      costs_.target) ||
      (draft_ != nullptr &&
       measure_stalest(*draft_, *scratch.draft_state, scratch.draft_logits.data(), costs_.draft));
  if (measured) {
    const auto end = Clock::now();
    next_measurement_ =
        end + std::chrono::duration_cast<Clock::duration>((end - begin) * kIdleFactor);
  }
}

}  // namespace spel::engine
