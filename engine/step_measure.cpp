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
constexpr std::chrono::milliseconds kWarmUp{10};
// Idle time per measured time.
constexpr double kIdleFactor = 100.0;

}  // namespace

std::size_t Stepper::rows_measured(const CausalModel& model) const {
  return std::min({&model == draft_ ? kDraftRowsMax : kTargetRowsMax, model.max_batch_rows(),
                   model.max_seq() / 2});
}

// Of a pass that follows its like, as in a stream: emptying a state writes over the caches, a draft
// that proposes in between does, and a machine that was idle, or busy with much larger passes, is
// slow for some milliseconds.
double Stepper::measure(CausalModel& model, Sequence& scratch, std::size_t rows,
                        std::chrono::milliseconds warm_up) {
  static constexpr std::array<TokenId, kTargetRowsMax> kTokens{};
  const bool of_target = &model == &target_;
  SequenceState& state = of_target ? *scratch.target_state : *scratch.draft_state;
  const bool round = rows <= config_.k_max + 1;
  const ForwardItem item{&state, std::span(kTokens).first(rows), round, LogitRows::kLast,
                         of_target ? scratch.target_logits.data() : scratch.draft_logits.data()};
  state.reset();
  const auto begin = Clock::now();
  do {
    model.forward({&item, 1});
  } while (Clock::now() - begin < warm_up && state.position() + 2 * rows <= model.max_seq());
  if (of_target && round && draft_ != nullptr) {
    propose_for_nobody(*scratch.draft_state, scratch.draft_logits.data(), rows - 1);
  }
  const PassClock clock;
  model.forward({&item, 1});
  const double seconds = clock.seconds();
  state.reset();
  return seconds;
}

void Stepper::propose_for_nobody(SequenceState& state, float* logits, std::size_t proposals) {
  static constexpr std::array<TokenId, 1> kToken{};
  const ForwardItem item{&state, kToken, true, LogitRows::kLast, logits};
  state.reset();
  for (std::size_t i = 0; i < std::min(proposals, draft_->max_seq()); ++i) {
    draft_->forward({&item, 1});
  }
}

void Stepper::calibrate(CausalModel& model, Sequence& scratch, PassCost& cost) {
  const auto counts = std::span(PassCost::kRows)
                          .first(static_cast<std::size_t>(std::distance(
                              PassCost::kRows.begin(),
                              std::upper_bound(PassCost::kRows.begin(), PassCost::kRows.end(),
                                               rows_measured(model)))));
  std::array<std::array<double, kCalibrationRuns>, PassCost::kRows.size()> seconds{};
  // Interleaved, so that a neighbour's burst does not fall on one row count alone; up and down in
  // turns, so that no small pass follows a large one.
  for (std::size_t run = 0; run < kCalibrationRuns; ++run) {
    for (std::size_t step = 0; step < counts.size(); ++step) {
      const std::size_t i = run % 2 == 0 ? step : counts.size() - 1 - step;
      seconds[i][run] = measure(model, scratch, counts[i], {});
    }
  }
  for (std::size_t i = 0; i < counts.size(); ++i) {
    auto& runs = seconds[i];
    std::sort(runs.begin(), runs.end());
    const double middle = runs[kCalibrationRuns / 2];
    const double spread = middle / runs[0] - 1.0;
    // On a busy machine nothing but the work itself is always in a measurement.
    const double seconds_taken = spread <= PassCost::kSpreadRelied ? middle : runs[0];
    cost.calibrate(counts[i], seconds_taken, spread, Clock::now());
  }
}

void Stepper::calibrate(Sequence& scratch) {
  calibrate(target_, scratch, costs_.target);
  if (draft_ != nullptr) {
    calibrate(*draft_, scratch, costs_.draft);
  }
}

// False: everything was measured of late.
bool Stepper::measure_stalest(CausalModel& model, Sequence& scratch, PassCost& cost) {
  const auto rows = cost.stalest(rows_measured(model), Clock::now() - kFresh);
  if (!rows) {
    return false;
  }
  const double seconds = measure(model, scratch, *rows, kWarmUp);
  cost.observe({static_cast<double>(*rows), 0.0}, seconds, Clock::now());
  return true;
}

void Stepper::measure_idle(Sequence& scratch) {
  const auto begin = Clock::now();
  if (begin < next_measurement_) {
    return;
  }
  next_measurement_ = begin + kLookAgain;  // However this one ends.
  const bool measured = measure_stalest(target_, scratch, costs_.target) ||
                        (draft_ != nullptr && measure_stalest(*draft_, scratch, costs_.draft));
  if (measured) {
    const auto end = Clock::now();
    next_measurement_ =
        end + std::chrono::duration_cast<Clock::duration>((end - begin) * kIdleFactor);
  }
}

}  // namespace spel::engine
