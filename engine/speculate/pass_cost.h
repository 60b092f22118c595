// What a forward pass costs, learnt from the passes themselves.
#pragma once

#include <array>
#include <cstddef>
#include <optional>

#include "engine/types.h"

namespace spel::engine {

/// What decides how long a pass takes.
struct PassLoad {
  double rows = 0.0;     ///< Token rows, over all sequences.
  double context = 0.0;  ///< Positions attended to, summed over the rows.

  /// `count` rows of one sequence, the first of them at `position`.
  [[nodiscard]] static PassLoad of_rows(std::size_t count, std::size_t position) {
    const auto rows = static_cast<double>(count);
    return {rows, rows * (static_cast<double>(position) + 0.5 * (rows + 1.0))};
  }
  PassLoad& operator+=(const PassLoad& other) {
    rows += other.rows;
    context += other.context;
    return *this;
  }
};

/// Seconds of a pass:
///
///   seconds(load) = busy * (curve(rows) + slope * context)
///
/// where `busy` is how slow the machine is just now, `curve` goes through fixed row counts and
/// `slope` is what one attended position of one row costs. All of them are estimated at once, as a
/// diagonal Kalman filter over their logarithms: a measured pass moves each in proportion to how
/// little is known about it, and what has not been measured for a while is known less and less. So
/// a change of load moves `busy`, a point of the curve that was measured at a bad moment is
/// overruled by its first real pass, and a single late pass moves nothing far.
///
/// What estimate() reads is monotone, as the work is: t(M) <= t(M + 1) and t(M) <= M t(1). Where
/// points contradict each other, those known better win. Not thread-safe.
class PassCost {
 public:
  static constexpr std::array<std::size_t, 13> kRows = {1,  2,  3,  4,  5,   7,  9,
                                                        13, 17, 33, 65, 129, 257};
  /// Spread of calibration runs above which they are no measurements.
  static constexpr double kSpreadRelied = 0.15;

  PassCost();

  /// Takes `seconds` for the curve at `rows`, one of kRows, without context. `spread`: how far the
  /// measurements it comes from lay apart, as a fraction: a wide one is not relied on.
  void calibrate(std::size_t rows, double seconds, double spread, Clock::time_point now);
  /// Folds one measured pass in.
  void observe(const PassLoad& load, double seconds, Clock::time_point now);

  /// 0 until anything is known.
  [[nodiscard]] double estimate(const PassLoad& load) const;
  /// The least it can be, by what is known well: the cost of the nearest smaller pass that is.
  [[nodiscard]] double least(const PassLoad& load) const;
  /// Standard deviation of what is believed about the curve at `rows`, as a fraction of it.
  [[nodiscard]] double doubt(double rows) const;
  [[nodiscard]] bool known() const noexcept { return known_; }
  /// The row count up to `rows_max` whose measurement is missing or the oldest before `before`.
  [[nodiscard]] std::optional<std::size_t> stalest(std::size_t rows_max,
                                                   Clock::time_point before) const;

 private:
  struct Point {
    double log_seconds = 0.0;
    double variance = 0.0;
    bool confirmed = false;  ///< Measured, and not at a moment that spread the measurements.
    Clock::time_point measured_at;
  };
  /// Where `rows` lies: seconds = (1 - share) * point[below] + share * point[above].
  struct Place {
    std::size_t below = 0;
    std::size_t above = 0;
    double share = 0.0;
    double beyond = 1.0;  ///< Factor for rows past the last point.
  };

  [[nodiscard]] static Place place_of(double rows);
  void forget(Clock::time_point now);
  void straighten();

  std::array<Point, kRows.size()> points_{};
  std::array<double, kRows.size()> monotone_{};  ///< The curve estimate() reads, `busy` included.
  double noise_ = 0.0;                           ///< Variance between one pass and the next.
  double log_busy_ = 0.0;
  double busy_variance_ = 0.0;
  double log_slope_ = 0.0;
  double slope_variance_ = 0.0;
  Clock::time_point updated_at_;
  bool known_ = false;
};

}  // namespace spel::engine
