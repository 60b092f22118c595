#include "engine/sample/filters.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>

#include "kernels/scalar_math.h"

namespace spel::engine {
namespace {

using Place = std::vector<ScoredToken>::iterator;

Place at(std::vector<ScoredToken>& candidates, std::size_t i) {
  return candidates.begin() + static_cast<std::ptrdiff_t>(i);
}

/// Calls use(weight) for each candidate in order, weight = exp_f64(score - top), until it is false.
template <class Use>
void for_each_weight(const kernels::Kernels& kernels, std::span<const ScoredToken> candidates,
                     double top, Use use) {
  std::array<double, 64> weights;
  while (!candidates.empty()) {
    const auto some = candidates.first(std::min(candidates.size(), weights.size()));
    for (std::size_t i = 0; i < some.size(); ++i) {
      weights[i] = some[i].score - top;
    }
    kernels.exp_f64(weights.data(), some.size(), weights.data());
    for (std::size_t i = 0; i < some.size(); ++i) {
      if (!use(weights[i])) {
        return;
      }
    }
    candidates = candidates.subspan(some.size());
  }
}

}  // namespace

void keep_top_k(std::vector<ScoredToken>& candidates, std::size_t k) {
  if (k < candidates.size()) {
    std::nth_element(candidates.begin(), at(candidates, k), candidates.end(), precedes);
    candidates.resize(k);
  }
}

double add_weights(const kernels::Kernels& kernels, std::span<const ScoredToken> candidates,
                   double top, double sum) {
  for_each_weight(kernels, candidates, top, [&](double weight) {
    sum += weight;
    return true;
  });
  return sum;
}

void keep_top_p_in_order(const kernels::Kernels& kernels, std::vector<ScoredToken>& candidates,
                         float p) {
  std::sort(candidates.begin(), candidates.end(), precedes);
  const double top = candidates.front().score;
  const double wanted = static_cast<double>(p) * add_weights(kernels, candidates, top, 0.0);
  double mass = 0.0;
  std::size_t kept = 0;
  for_each_weight(kernels, candidates, top, [&](double weight) {
    mass += weight;
    ++kept;
    return mass < wanted;
  });
  candidates.resize(kept);
}

// Sums of the same non-negative terms in another order differ by less than 2 m 2^-53 of the total,
// m terms, to first order: each sum is within (m - 1) 2^-53 of the true one (Higham, Accuracy and
// Stability of Numerical Algorithms, 4.2). The definition compares mass < p total; both sides may
// be off by that, the product by a rounding more. The margin doubles all of it.
bool keep_top_p(const kernels::Kernels& kernels, std::vector<ScoredToken>& candidates,
                const Nucleus& nucleus) {
  const double margin = 8.0 * static_cast<double>(nucleus.members + 16) * 0x1p-53 * nucleus.total;
  const double wanted = static_cast<double>(nucleus.p) * nucleus.total;
  const double surely_below = wanted - margin;
  const double surely_reached = wanted + margin;

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
    const double sum = add_weights(kernels, std::span(candidates).subspan(begin, middle - begin),
                                   nucleus.top, mass);
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
  bool certain = true;
  for_each_weight(
      kernels, std::span(candidates).subspan(begin, end - begin), nucleus.top, [&](double weight) {
        mass += weight;
        ++kept;
        // The last one is kept where it is known that no more are.
        certain = mass < surely_below || mass >= surely_reached || (kept == end && reached);
        return certain && mass < surely_reached;
      });
  if (certain) {
    candidates.resize(kept);
  }
  return certain;
}

void keep_min_p(std::vector<ScoredToken>& candidates, float min_p, double top) {
  const auto least = static_cast<double>(min_p);
  const auto first = std::min_element(candidates.begin(), candidates.end(), precedes);
  std::iter_swap(candidates.begin(), first);
  // Exponential, logarithm and difference are far closer than this: only within it is the
  // exponential asked. It need not be monotonous to the last bit: what counts is the first failure.
  constexpr double kClose = 1e-9;
  const double edge = top + kernels::log_f64(least);
  const double close = kClose + std::abs(top) * 0x1p-48;
  const auto fails = [&](double score) {
    if (std::abs(score - edge) > close) {
      return score < edge;
    }
    return !(kernels::exp_f64(score - top) >= least);
  };
  const ScoredToken* failed = nullptr;
  for (std::size_t i = 1; i < candidates.size(); ++i) {
    const ScoredToken& c = candidates[i];
    if ((failed == nullptr || precedes(c, *failed)) && fails(c.score)) {
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
