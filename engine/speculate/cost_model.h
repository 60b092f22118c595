// What passes cost, as measured: the numbers a governor decides by and a receipt reports.
#pragma once

#include <array>
#include <cstddef>

namespace spel::engine {

/// Seconds of a pass as a function of its token rows: a curve through fixed row counts, measured
/// once on a quiet start, times how busy the machine is now. Every pass teaches the second factor,
/// so one row count that is used often keeps the others current; the curve itself follows slowly.
/// Not thread-safe.
class RowCost {
 public:
  static constexpr std::array<std::size_t, 12> kRows = {1, 2, 3, 4, 5, 7, 9, 13, 17, 33, 65, 129};

  /// Sets the curve at `rows`, one of kRows; of several calls the fastest counts, for nothing but
  /// the work itself is always in a measurement.
  void calibrate(std::size_t rows, double seconds);
  /// Folds one measured pass in. One that took more than twice or less than half of what was
  /// expected counts as that much: single passes are late for reasons that say nothing about the
  /// next one.
  void observe(std::size_t rows, double seconds);
  /// 0 until anything is known.
  [[nodiscard]] double estimate(double rows) const;
  [[nodiscard]] bool known() const noexcept { return known_; }

 private:
  [[nodiscard]] double curve(double rows) const;

  std::array<double, kRows.size()> seconds_{};  ///< 0: not measured.
  double busy_ = 1.0;
  bool known_ = false;
};

/// Target and draft costs together, and the definitions of the document:
/// c = draft seconds per forward / AR seconds per token, v = seconds of one (K+1)-token
/// verification / AR seconds per token, speedup(alpha) = (1 + alpha K) / ((K+1) c + v).
struct CostModel {
  RowCost target;
  RowCost draft;

  [[nodiscard]] double ar_seconds() const { return target.estimate(1.0); }
  [[nodiscard]] double c() const;
  [[nodiscard]] double v(std::size_t k) const;
};

/// speedup(alpha) of the document's cost model.
[[nodiscard]] double projected_speedup(double alpha, std::size_t k, double c, double v);

}  // namespace spel::engine
