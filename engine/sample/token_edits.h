// The tokens whose score is not just their logit: those with a bias or a penalty, and ends.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "engine/request/request.h"
#include "engine/sample/filters.h"

namespace spel::engine {

/// A small map of distinct ids: what it costs goes with the text, not with the vocabulary.
/// Allocates in reset(), and in push() beyond what reset() was told.
class TokenEdits {
 public:
  /// Forgets everything. Of bias, penalties and ends; `pushes` may come before any pop().
  void reset(const SamplingParams& params, std::span<const TokenId> prompt,
             std::span<const TokenId> ends, std::size_t pushes);

  /// Adds a token to the output, or takes back the last one.
  void push(TokenId token);
  void pop(TokenId token);

  /// The score of every token that is not just its logit, each token once: bias, then penalties.
  /// NaN for ends, unless they are allowed. Valid until the next call.
  [[nodiscard]] std::span<const ScoredToken> scores(std::span<const float> logits,
                                                    bool ends_allowed);

 private:
  struct Entry {
    TokenId token = 0;
    std::uint32_t count = 0;       ///< In the output.
    std::uint32_t bias_begin = 0;  ///< Into biases_.
    std::uint32_t bias_count = 0;
    bool in_prompt = false;
    bool is_end = false;
  };

  Entry& entry(TokenId token);
  [[nodiscard]] std::size_t slot_of(TokenId token) const;
  void make_room(std::size_t tokens);

  double repetition_ = 1.0;
  double presence_ = 0.0;
  double frequency_ = 0.0;
  bool penalties_ = false;
  std::vector<float> biases_;  ///< Grouped by token, in the order given.
  std::vector<Entry> entries_;
  /// Open addressing, linear probing: 1 + index into entries_, 0: free. A power of two, at most
  /// half of it taken. What leaves is what came last, so no other was placed past it.
  std::vector<std::uint32_t> slots_;
  std::vector<ScoredToken> scores_;
};

}  // namespace spel::engine
