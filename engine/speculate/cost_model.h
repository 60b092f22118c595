// What passes cost, as measured: the numbers a governor decides by and a receipt reports.
#pragma once

#include <array>
#include <cstddef>

namespace spel::engine {

/// Seconds of a pass as a function of its token rows: a running estimate at fixed row counts,
/// interpolated between them. Not thread-safe.
class RowCost {
 public:
  /// Folds one measured pass in. A pass slower than twice the estimate counts as twice: on a busy
  /// machine single passes are late for reasons that say nothing about the next one.
  void observe(std::size_t rows, double seconds);
  /// 0 until anything was observed.
  [[nodiscard]] double estimate(double rows) const;
  [[nodiscard]] bool known() const noexcept { return observed_ > 0; }

  static constexpr std::array<std::size_t, 12> kRows = {1, 2, 3, 4, 5, 7, 9, 13, 17, 33, 65, 129};

 private:
  std::array<double, kRows.size()> seconds_{};  ///< 0: never observed.
  std::size_t observed_ = 0;
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
