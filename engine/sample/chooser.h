// Chooses a token from one row of logits, over a vocabulary of any size.
//
//   choice at t = argmax_i(score_i / T + gumbel(seed, t, i)) over the candidates left by the
//   filters
//
// (Gumbel-max: exactly a sample of the filtered softmax); T = 0 is argmax; lowest id on a tie. What
// is chosen is bit for bit what this definition says in f64; that most ids are never looked at one
// by one changes nothing:
// - Without filters, with the best sum so far, an id can win only if its noise exceeds that minus
//   its score; noise is bounded from its draw without logarithms (noise.h), sixteen ids at once.
// - top_k begins from the k-th largest maximum of blocks: k ids are no smaller.
// - top_p sums in another order than defined and knows how far off that may be; where the cut lies
//   within that bound, everything is sorted and summed as defined.
// - min_p takes what exceeds a threshold and looks at it more closely.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "engine/request/request.h"
#include "engine/sample/filters.h"
#include "engine/sample/noise.h"
#include "engine/sample/token_mask.h"
#include "kernels/kernels.h"

namespace spel::engine {

/// What samplers of one thread share: kernels, the ids that are tokens, and room to work in, about
/// 21 bytes an id. Allocates at construction only. Not thread-safe.
class Chooser {
 public:
  explicit Chooser(std::size_t vocab_size,
                   const kernels::Kernels& kernels = kernels::Kernels::select(),
                   std::shared_ptr<const TokenMask> mask = nullptr);

  [[nodiscard]] std::size_t vocab_size() const { return vocab_size_; }

  /// The token for absolute position `position`, of temperature, filters and seed. `logits` are
  /// [vocab]; the tokens of `edited`, each there once, have the score given there instead, NaN: not
  /// to be chosen. -1 if no token that may be chosen has a number.
  /// Precondition: the temperature is finite and not negative.
  [[nodiscard]] TokenId choose(std::span<const float> logits, std::span<const ScoredToken> edited,
                               const SamplingParams& params, std::size_t position);

  /// `token`'s natural-log probability and the `top` most probable tokens under softmax(logits),
  /// most probable first, lowest id on a tie. Ids that the mask forbids have no probability (-inf)
  /// and are never listed.
  void logprobs(std::span<const float> logits, TokenId token, std::size_t top, float* logprob,
                TopLogprobs* top_logprobs);

 private:
  void begin(std::span<const float> logits, std::span<const ScoredToken> edited);
  [[nodiscard]] std::optional<ScoredToken> top_of_row() const;
  [[nodiscard]] float kth_block_max(std::size_t k);
  template <class Use>
  void for_each_at_least(float least, Use use) const;
  void list_edited(std::span<const ScoredToken> edited, double temperature);
  void list_at_least(float least, double temperature);
  void filter(std::span<const ScoredToken> edited, const SamplingParams& params, double top);
  void filter_by_mass(std::span<const ScoredToken> edited, const SamplingParams& params,
                      double top);
  [[nodiscard]] TokenId race_listed(const PositionNoise& noise) const;
  [[nodiscard]] TokenId race_all(const PositionNoise& noise, double temperature,
                                 const std::optional<ScoredToken>& top) const;

  std::size_t vocab_size_;
  const kernels::Kernels& kernels_;
  std::shared_ptr<const TokenMask> mask_;
  std::vector<float> copy_;          ///< [vocab] Logits with NaN for what is edited or forbidden.
  std::vector<float> block_max_;     ///< Of row_.
  std::vector<float> sorted_;        ///< Room for block_max_ in another order.
  std::vector<ScoredToken> listed_;  ///< Capacity [vocab]. Candidates looked at one by one.

  // The choice being made.
  std::span<const float> row_;  ///< The tokens that are scored by their logits; NaN: not there.
  std::size_t blocks_ = 0;      ///< Of row_.
};

}  // namespace spel::engine
