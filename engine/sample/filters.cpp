#include "engine/sample/filters.h"

#include <algorithm>
#include <iterator>

#include "kernels/scalar_math.h"

namespace spel::engine {
namespace {

using Place = std::vector<ScoredToken>::iterator;

Place at(std::vector<ScoredToken>& candidates, std::size_t i) {
  return candidates.begin() + static_cast<std::ptrdiff_t>(i);
}

}  // namespace

void keep_top_k(std::vector<ScoredToken>& candidates, std::size_t k) {
  if (k < candidates.size()) {
    std::nth_element(candidates.begin(), at(candidates, k), candidates.end(), precedes);
    candidates.resize(k);
  }
}

void keep_top_p_in_order(std::vector<ScoredToken>& candidates, float p) {
  std::sort(candidates.begin(), candidates.end(), precedes);
  const double top = candidates.front().score;
  double total = 0.0;
  for (const ScoredToken& c : candidates) {
    total += kernels::exp_f64(c.score - top);
  }
  const double wanted = static_cast<double>(p) * total;
  double mass = 0.0;
  std::size_t kept = 0;
  while (kept < candidates.size() && (kept == 0 || mass < wanted)) {
    mass += kernels::exp_f64(candidates[kept].score - top);
    ++kept;
  }
  candidates.resize(kept);
}

// Sums of the same non-negative terms in another order differ by less than 2 m 2^-53 of the total,
// m terms, to first order: each sum is within (m - 1) 2^-53 of the true one (Higham, Accuracy and
// Stability of Numerical Algorithms, 4.2). The definition compares mass < p total; both sides may
// be off by that, the product by a rounding more. The margin doubles all of it.
bool keep_top_p(std::vector<ScoredToken>& candidates, const Nucleus& nucleus) {
  const double margin = 8.0 * static_cast<double>(nucleus.members + 16) * 0x1p-53 * nucleus.total;
  const double wanted = static_cast<double>(nucleus.p) * nucleus.total;
  const double surely_below = wanted - margin;
  const double surely_reached = wanted + margin;
  const auto weight = [&](const ScoredToken& c) { return kernels::exp_f64(c.score - nucleus.top); };

  // The number kept is in (begin, end]. The first `begin` are candidates before all others, weigh
  // `mass` and surely do not reach what is wanted; the first `end` do, or are all there is.
  std::size_t begin = 0;
  std::size_t end = candidates.size();
  double mass = 0.0;
  constexpr std::size_t kFew = 32;
  bool reached = nucleus.complete;
  while (end - begin > kFew) {
    const std::size_t middle = begin + (end - begin) / 2;
    std::nth_element(at(candidates, begin), at(candidates, middle), at(candidates, end), precedes);
    double sum = mass;
    for (std::size_t i = begin; i < middle; ++i) {
      sum += weight(candidates[i]);
    }
    if (sum < surely_below) {
      begin = middle;
      mass = sum;
    } else if (sum >= surely_reached) {
      end = middle;
      reached = true;
    } else {
      return false;
    }
  }
  std::sort(at(candidates, begin), at(candidates, end), precedes);
  std::size_t kept = begin;
  while (kept < end) {
    mass += weight(candidates[kept]);
    ++kept;
    if (mass >= surely_reached) {
      candidates.resize(kept);
      return true;
    }
    if (mass >= surely_below && !(kept == end && reached)) {
      return false;
    }
  }
  // Known to reach it elsewhere, or all there is: nothing beyond is kept. Otherwise the candidates
  // weigh too little, and all of them are.
  candidates.resize(end);
  return true;
}

void keep_min_p(std::vector<ScoredToken>& candidates, float min_p, double top) {
  const auto least = static_cast<double>(min_p);
  const auto first = std::min_element(candidates.begin(), candidates.end(), precedes);
  std::iter_swap(candidates.begin(), first);
  // exp_f64 need not be monotonous to the last bit: what counts is the first that fails.
  const ScoredToken* failed = nullptr;
  for (std::size_t i = 1; i < candidates.size(); ++i) {
    const ScoredToken& c = candidates[i];
    if ((failed == nullptr || precedes(c, *failed)) &&
        !(kernels::exp_f64(c.score - top) >= least)) {
      failed = &c;
    }
  }
  if (failed != nullptr) {
    const ScoredToken end = *failed;
    const auto kept = std::partition(candidates.begin() + 1, candidates.end(),
                                     [&](const ScoredToken& c) { return precedes(c, end); });
    candidates.erase(kept, candidates.end());
  }
}

}  // namespace spel::engine
