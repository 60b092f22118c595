// top_k, top_p and min_p over a list of candidates. What is left are always the first in one order:
// by falling score, lowest id on a tie.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "engine/types.h"
#include "kernels/kernels.h"

namespace spel::engine {

struct ScoredToken {
  double score;  ///< Logit after bias and penalties, over the temperature.
  TokenId token;
};

/// The order of candidates. Scores are numbers.
[[nodiscard]] inline bool precedes(const ScoredToken& a, const ScoredToken& b) {
  return a.score > b.score || (a.score == b.score && a.token < b.token);
}

/// Keeps the first k > 0, in no order.
void keep_top_k(std::vector<ScoredToken>& candidates, std::size_t k);

/// `sum` plus exp_f64(score - top) of each, added in order.
[[nodiscard]] double add_weights(const kernels::Kernels& kernels,
                                 std::span<const ScoredToken> candidates, double top, double sum);

/// The definition of top_p: the fewest candidates in order whose probabilities, summed in that
/// order in f64, reach p times the total, summed so too; at least one. Leaves them in order.
void keep_top_p_in_order(const kernels::Kernels& kernels, std::vector<ScoredToken>& candidates,
                         float p);

/// What keep_top_p() knows of the whole set that `candidates` come from.
struct Nucleus {
  float p;              ///< < 1
  double top;           ///< The set's first score; finite.
  double total;         ///< The sum of exp_f64(score - top) over the set, in any order.
  std::size_t members;  ///< At least the set's size.
  bool complete;        ///< The candidates are all of it, else its first.
};

/// Keeps what keep_top_p_in_order() over the whole set would of `candidates`, in no order and
/// without sorting them all. Returns false where the sums are too close to tell, their rounding
/// considered: then the candidates are still the same, in no order.
[[nodiscard]] bool keep_top_p(const kernels::Kernels& kernels, std::vector<ScoredToken>& candidates,
                              const Nucleus& nucleus);

/// Keeps the first, of score `top`, and from it on those with exp_f64(score - top) >= min_p.
void keep_min_p(std::vector<ScoredToken>& candidates, float min_p, double top);

}  // namespace spel::engine
