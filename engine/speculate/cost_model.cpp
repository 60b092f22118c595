#include "engine/speculate/cost_model.h"

#include <algorithm>

namespace spel::engine {
namespace {

constexpr double kBusyWeight = 0.1;    // A new load is believed after about ten passes.
constexpr double kCurveWeight = 0.01;  // The curve after about a hundred of one row count.
constexpr double kOutlier = 2.0;

}  // namespace

void RowCost::calibrate(std::size_t rows, double seconds) {
  const auto place = std::find(kRows.begin(), kRows.end(), rows);
  if (place == kRows.end()) {
    return;
  }
  double& point = seconds_[static_cast<std::size_t>(place - kRows.begin())];
  point = point == 0.0 ? seconds : std::min(point, seconds);
  known_ = true;
}

void RowCost::observe(std::size_t rows, double seconds) {
  if (!known_) {
    calibrate(rows, seconds);
    return;
  }
  const double expected = estimate(static_cast<double>(rows));
  const double ratio = std::clamp(seconds / expected, 1.0 / kOutlier, kOutlier);
  busy_ *= 1.0 + kBusyWeight * (ratio - 1.0);
  const auto place = std::find(kRows.begin(), kRows.end(), rows);
  if (place != kRows.end()) {
    double& point = seconds_[static_cast<std::size_t>(place - kRows.begin())];
    if (point == 0.0) {
      point = expected / busy_ * ratio;
    }
    point *= 1.0 + kCurveWeight * (ratio - 1.0);
  }
}

double RowCost::estimate(double rows) const { return busy_ * curve(rows); }

double RowCost::curve(double rows) const {
  // The nearest observed row counts on either side.
  std::size_t below = kRows.size();
  std::size_t above = kRows.size();
  for (std::size_t i = 0; i < kRows.size(); ++i) {
    if (seconds_[i] == 0.0) {
      continue;
    }
    if (static_cast<double>(kRows[i]) <= rows) {
      below = i;
    } else if (above == kRows.size()) {
      above = i;
    }
  }
  if (below == kRows.size()) {
    return above == kRows.size() ? 0.0 : seconds_[above];
  }
  const auto at = static_cast<double>(kRows[below]);
  if (above == kRows.size()) {
    return seconds_[below] * std::max(1.0, rows / at);
  }
  const double share = (rows - at) / (static_cast<double>(kRows[above]) - at);
  return seconds_[below] + share * (seconds_[above] - seconds_[below]);
}

double CostModel::c() const {
  const double ar = ar_seconds();
  return ar > 0.0 ? draft.estimate(1.0) / ar : 0.0;
}

double CostModel::v(std::size_t k) const {
  const double ar = ar_seconds();
  return ar > 0.0 ? target.estimate(static_cast<double>(k + 1)) / ar : 0.0;
}

double projected_speedup(double alpha, std::size_t k, double c, double v) {
  const auto proposals = static_cast<double>(k);
  return (1.0 + alpha * proposals) / ((proposals + 1.0) * c + v);
}

}  // namespace spel::engine
