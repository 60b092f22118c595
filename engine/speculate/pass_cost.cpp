#include "engine/speculate/pass_cost.h"

#include <algorithm>
#include <cmath>

namespace spel::engine {
namespace {

// Variances are of logarithms: 0.01 is a standard deviation of a tenth.
// One pass differs from the next by this much at least, and on a busy machine by up to that.
constexpr double kPassNoiseMin = 0.01;
constexpr double kPassNoiseMax = 0.25;
constexpr double kNoiseWeight = 0.05;  // Of a pass in the average of that difference.
constexpr double kBusyGain = 0.1;      // However noisy: a new load is believed after some passes.
constexpr double kUnconfirmed = 0.25;  // A point nobody measured on a quiet machine.
constexpr double kStale = 0.04;        // As far as a measured point is ever forgotten.
constexpr double kBusyKnown = 0.15;    // As far as the load is.
constexpr double kSlopeKnown = 0.5;
constexpr double kBusyDrift = 0.05;    // Variance a second: the load changes within a second,
constexpr double kPointDrift = 0.01;   // a point of the curve relative to the others hardly,
constexpr double kSlopeDrift = 0.001;  // what a position costs relative to them never.
constexpr double kSurprise = 2.5;      // Standard deviations a single pass counts for at most.
constexpr double kWellKnown = 0.15;    // Doubt below which a point bounds its neighbours.
// Of a position of one row over one row without context, before anything is measured.
constexpr double kFirstSlope = 1.0 / 16384.0;

double square(double x) { return x * x; }

}  // namespace

PassCost::PassCost() {
  for (std::size_t i = 0; i < points_.size(); ++i) {
    // Between a pass that costs the same for every row count and one that grows with it.
    points_[i].log_seconds = 0.5 * std::log(static_cast<double>(kRows[i]));
    points_[i].variance = kUnconfirmed;
  }
  log_slope_ = std::log(kFirstSlope);
  noise_ = kPassNoiseMin;
  busy_variance_ = kBusyKnown;
  slope_variance_ = kSlopeKnown;
}

PassCost::Place PassCost::place_of(double rows) {
  Place place;
  while (place.above + 1 < kRows.size() && static_cast<double>(kRows[place.above]) < rows) {
    ++place.above;
  }
  const auto above = static_cast<double>(kRows[place.above]);
  if (rows >= above) {
    place.below = place.above;
    place.beyond = std::max(1.0, rows / above);
    return place;
  }
  place.below = place.above == 0 ? 0 : place.above - 1;
  const auto below = static_cast<double>(kRows[place.below]);
  place.share = place.above == place.below ? 0.0 : (rows - below) / (above - below);
  return place;
}

void PassCost::calibrate(std::size_t rows, double seconds, double spread, Clock::time_point now) {
  const auto at = std::find(kRows.begin(), kRows.end(), rows);
  if (at == kRows.end() || !(seconds > 0.0)) {
    return;
  }
  const auto index = static_cast<std::size_t>(at - kRows.begin());
  const double shift = std::log(seconds) - log_busy_ - points_[index].log_seconds;
  if (!known_) {
    // The first figure gives all others their scale.
    for (Point& point : points_) {
      point.log_seconds += shift;
    }
    log_slope_ += shift;
    known_ = true;
  } else {
    points_[index].log_seconds += shift;
  }
  points_[index].confirmed = spread <= kSpreadRelied;
  points_[index].variance = points_[index].confirmed ? kPassNoiseMin : kUnconfirmed;
  points_[index].measured_at = now;
  updated_at_ = std::max(updated_at_, now);
  straighten();
}

void PassCost::observe(const PassLoad& load, double seconds, Clock::time_point now) {
  if (!(seconds > 0.0) || !(load.rows > 0.0)) {
    return;
  }
  const Place place = place_of(load.rows);
  if (!known_) {
    const double guess = std::exp(points_[place.below].log_seconds);
    log_busy_ = 0.0;
    for (Point& point : points_) {
      point.log_seconds += std::log(seconds / guess);
    }
    log_slope_ += std::log(seconds / guess);
    known_ = true;
  }
  forget(now);

  Point& below = points_[place.below];
  Point& above = points_[place.above];
  const double below_part = (1.0 - place.share) * place.beyond * std::exp(below.log_seconds);
  const double above_part = place.share * place.beyond * std::exp(above.log_seconds);
  const double context_part = std::exp(log_slope_) * load.context;
  const double total = below_part + above_part + context_part;
  const double from_below = below_part / total;
  const double from_above = above_part / total;
  const double from_context = context_part / total;

  const double variance = noise_ + busy_variance_ + square(from_below) * below.variance +
                          square(from_above) * above.variance +
                          square(from_context) * slope_variance_;
  const double limit = kSurprise * std::sqrt(variance);
  const double surprise =
      std::clamp(std::log(seconds) - log_busy_ - std::log(total), -limit, limit);
  // Moves one quantity by its share of the surprise, and is surer of it from then on.
  const auto learn = [&](double& value, double& doubt, double weight, double least_gain) {
    const double gain = std::max(weight * doubt / variance, least_gain);
    value += gain * surprise;
    doubt *= 1.0 - weight * gain;
  };
  learn(log_busy_, busy_variance_, 1.0, kBusyGain);
  learn(below.log_seconds, below.variance, from_below, 0.0);
  if (place.above != place.below) {
    learn(above.log_seconds, above.variance, from_above, 0.0);
  }
  learn(log_slope_, slope_variance_, from_context, 0.0);
  noise_ = std::clamp(noise_ + kNoiseWeight * (square(surprise) - variance), kPassNoiseMin,
                      kPassNoiseMax);

  Point& nearest = place.share < 0.5 ? below : above;
  nearest.confirmed = true;
  nearest.variance = std::min(nearest.variance, kStale);
  nearest.measured_at = now;
  straighten();
}

void PassCost::forget(Clock::time_point now) {
  const double seconds = std::clamp(seconds_between(updated_at_, now), 0.0, 60.0);
  updated_at_ = std::max(updated_at_, now);
  const auto grow = [seconds](double& variance, double drift, double most) {
    variance = std::max(variance, std::min(variance + drift * seconds, most));
  };
  grow(busy_variance_, kBusyDrift, kBusyKnown);
  grow(slope_variance_, kSlopeDrift, kSlopeKnown);
  for (Point& point : points_) {
    grow(point.variance, kPointDrift, point.confirmed ? kStale : kUnconfirmed);
  }
}

// The nearest curve that never falls, in the logarithm and weighted by how well each point is known
// (pool adjacent violators), then cut at M t(1).
void PassCost::straighten() {
  struct Pool {
    double value;
    double weight;
    std::size_t count;
  };
  std::array<Pool, kRows.size()> pools;
  std::size_t used = 0;
  for (const Point& point : points_) {
    pools[used++] = {point.log_seconds, 1.0 / point.variance, 1};
    while (used > 1 && pools[used - 2].value > pools[used - 1].value) {
      Pool& left = pools[used - 2];
      const Pool& right = pools[used - 1];
      const double weight = left.weight + right.weight;
      left.value = (left.value * left.weight + right.value * right.weight) / weight;
      left.weight = weight;
      left.count += right.count;
      --used;
    }
  }
  std::size_t next = 0;
  for (std::size_t i = 0; i < used; ++i) {
    for (std::size_t n = 0; n < pools[i].count; ++n) {
      monotone_[next++] = std::exp(pools[i].value + log_busy_);
    }
  }
  for (std::size_t i = 1; i < monotone_.size(); ++i) {
    monotone_[i] = std::min(monotone_[i], static_cast<double>(kRows[i]) * monotone_[0]);
  }
}

double PassCost::estimate(const PassLoad& load) const {
  if (!known_) {
    return 0.0;
  }
  const Place place = place_of(load.rows);
  const double rows = place.beyond * ((1.0 - place.share) * monotone_[place.below] +
                                      place.share * monotone_[place.above]);
  return rows + std::exp(log_busy_ + log_slope_) * load.context;
}

double PassCost::least(const PassLoad& load) const {
  if (!known_) {
    return 0.0;
  }
  const Place place = place_of(load.rows);
  for (std::size_t i = place.below + 1; i-- > 0;) {
    if (std::sqrt(points_[i].variance) <= kWellKnown) {
      return std::min(estimate(load),
                      monotone_[i] + std::exp(log_busy_ + log_slope_) * load.context);
    }
  }
  return estimate(load) * std::exp(-2.0 * doubt(load.rows));
}

double PassCost::doubt(double rows) const {
  const Place place = place_of(rows);
  return std::sqrt((1.0 - place.share) * points_[place.below].variance +
                   place.share * points_[place.above].variance);
}

std::optional<std::size_t> PassCost::stalest(std::size_t rows_max, Clock::time_point before) const {
  const auto age = [](const Point& point) {
    return point.confirmed ? point.measured_at : Clock::time_point{};
  };
  std::optional<std::size_t> found;
  for (std::size_t i = 0; i < points_.size() && kRows[i] <= rows_max; ++i) {
    if (age(points_[i]) < before && (!found || age(points_[i]) < age(points_[*found]))) {
      found = i;
    }
  }
  return found ? std::optional(kRows[*found]) : std::nullopt;
}

}  // namespace spel::engine
