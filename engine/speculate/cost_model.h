// Target and draft costs together: the numbers the planner decides by and a receipt reports.
#pragma once

#include <cstddef>

#include "engine/speculate/pass_cost.h"

namespace spel::engine {

/// The definitions of the document: c = draft seconds per forward / AR seconds per token, v =
/// seconds of one (K+1)-token verification / AR seconds per token. Both depend on how much context
/// is attended to: `position` is where the pass's first token sits. Sampling is part of a pass. A
/// ratio is 0 while what was measured does not bear it out: nothing a reader could take for a
/// measurement is made up. Not thread-safe.
struct CostModel {
  PassCost target;
  PassCost draft;

  [[nodiscard]] double ar_seconds(std::size_t position) const;
  [[nodiscard]] double c(std::size_t position) const;
  /// Never below 1.
  [[nodiscard]] double v(std::size_t k, std::size_t position) const;
};

/// speedup(alpha) of the document's cost model: (1 + alpha K) / ((K+1) c + v).
[[nodiscard]] double projected_speedup(double alpha, std::size_t k, double c, double v);

}  // namespace spel::engine
