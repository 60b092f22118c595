#include "engine/speculate/cost_model.h"

#include <cmath>

namespace spel::engine {
namespace {

/// A ratio of two costs is shown while its standard deviation stays below this.
constexpr double kDoubtShown = 0.3;

double ratio(const PassCost& over, const PassLoad& load, const PassCost& under,
             const PassLoad& unit) {
  if (!over.known() || !under.known() ||
      std::hypot(over.doubt(load.rows), under.doubt(unit.rows)) > kDoubtShown) {
    return 0.0;
  }
  return over.estimate(load) / under.estimate(unit);
}

}  // namespace

double CostModel::ar_seconds(std::size_t position) const {
  const PassLoad unit = PassLoad::of_rows(1, position);
  return target.known() && target.doubt(unit.rows) <= kDoubtShown ? target.estimate(unit) : 0.0;
}

double CostModel::c(std::size_t position) const {
  const PassLoad unit = PassLoad::of_rows(1, position);
  return ratio(draft, unit, target, unit);
}

double CostModel::v(std::size_t k, std::size_t position) const {
  return ratio(target, PassLoad::of_rows(k + 1, position), target, PassLoad::of_rows(1, position));
}

double projected_speedup(double alpha, std::size_t k, double c, double v) {
  const auto proposals = static_cast<double>(k);
  return (1.0 + alpha * proposals) / ((proposals + 1.0) * c + v);
}

}  // namespace spel::engine
