#include "engine/schedule/cost_meter.h"

#include <algorithm>
#include <array>
#include <span>

#include "engine/speculate/pass_clock.h"

namespace spel::engine {
namespace {

constexpr std::size_t kTargetRowsMax = 65;
constexpr std::size_t kCalibrationRuns = 5;
// A measurement younger than this is good enough while there is nothing to do.
constexpr std::chrono::seconds kFresh{20};
constexpr std::chrono::seconds kLookAgain{1};
constexpr std::chrono::milliseconds kWarmUp{10};
// Idle time per measured time.
constexpr double kIdleFactor = 100.0;

}  // namespace

std::size_t CostMeter::rows_measured(Side side) const {
  return side == Side::kDraft
             ? drafter_->rows_measured()
             : std::min({kTargetRowsMax, target_.max_batch_rows(), target_.max_seq()});
}

void CostMeter::pass(Side side, Sequence& scratch, std::size_t rows) {
  if (side == Side::kDraft) {
    drafter_->rehearse(*scratch.draft_state, rows);
    return;
  }
  static constexpr std::array<TokenId, kTargetRowsMax> kTokens{};
  SequenceState& state = *scratch.target_state;
  if (state.position() + rows > target_.max_seq()) {
    state.reset();
  }
  const bool round = rows <= config_.k_max + 1;
  const ForwardItem item{&state, std::span(kTokens).first(rows), round, LogitRows::kLast,
                         scratch.target_logits.data()};
  target_.forward({&item, 1});
}

// Of a pass that follows its like, as in a stream: emptying a state writes over the caches, a draft
// that proposes in between does, and a machine that was idle, or busy with much larger passes, is
// slow for some milliseconds.
double CostMeter::measure(Side side, Sequence& scratch, std::size_t rows,
                          std::chrono::milliseconds warm_up) {
  scratch.target_state->reset();
  if (drafter_ != nullptr) {
    scratch.draft_state->reset();
  }
  const auto begin = Clock::now();
  do {
    pass(side, scratch, rows);
  } while (Clock::now() - begin < warm_up);
  if (side == Side::kTarget && drafter_ != nullptr && rows <= config_.k_max + 1) {
    for (std::size_t proposal = 1; proposal < rows; ++proposal) {
      pass(Side::kDraft, scratch, 1);
    }
  }
  const PassClock clock;
  pass(side, scratch, rows);
  return clock.seconds();
}

void CostMeter::calibrate(Side side, Sequence& scratch) {
  const auto counts = std::span(PassCost::kRows)
                          .first(static_cast<std::size_t>(std::distance(
                              PassCost::kRows.begin(),
                              std::upper_bound(PassCost::kRows.begin(), PassCost::kRows.end(),
                                               rows_measured(side)))));
  std::array<std::array<double, kCalibrationRuns>, PassCost::kRows.size()> seconds{};
  // Interleaved, so that a neighbour's burst does not fall on one row count alone; up and down in
  // turns, so that no small pass follows a large one.
  for (std::size_t run = 0; run < kCalibrationRuns; ++run) {
    for (std::size_t step = 0; step < counts.size(); ++step) {
      const std::size_t i = run % 2 == 0 ? step : counts.size() - 1 - step;
      seconds[i][run] = measure(side, scratch, counts[i], {});
    }
  }
  for (std::size_t i = 0; i < counts.size(); ++i) {
    auto& runs = seconds[i];
    std::sort(runs.begin(), runs.end());
    const double middle = runs[kCalibrationRuns / 2];
    const double spread = middle / runs[0] - 1.0;
    // On a busy machine nothing but the work itself is always in a measurement.
    const double seconds_taken = spread <= PassCost::kSpreadRelied ? middle : runs[0];
    cost(side).calibrate(counts[i], seconds_taken, spread, Clock::now());
  }
}

void CostMeter::calibrate(Sequence& scratch) {
  calibrate(Side::kTarget, scratch);
  if (drafter_ != nullptr) {
    calibrate(Side::kDraft, scratch);
  }
}

// False: everything was measured of late.
bool CostMeter::measure_stalest(Side side, Sequence& scratch) {
  const auto rows = cost(side).stalest(rows_measured(side), Clock::now() - kFresh);
  if (!rows) {
    return false;
  }
  const double seconds = measure(side, scratch, *rows, kWarmUp);
  cost(side).observe({static_cast<double>(*rows), 0.0}, seconds, Clock::now());
  return true;
}

void CostMeter::measure_idle(Sequence& scratch) {
  const auto begin = Clock::now();
  if (begin < next_measurement_) {
    return;
  }
  next_measurement_ = begin + kLookAgain;  // However this one ends.
  const bool measured = measure_stalest(Side::kTarget, scratch) ||
                        (drafter_ != nullptr && measure_stalest(Side::kDraft, scratch));
  if (measured) {
    const auto end = Clock::now();
    next_measurement_ =
        end + std::chrono::duration_cast<Clock::duration>((end - begin) * kIdleFactor);
  }
}

}  // namespace spel::engine
