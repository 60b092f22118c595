// Ends a model's thoughts that take too long, by choosing the tokens that close them.
#pragma once

#include <cstddef>
#include <optional>

#include "engine/request/request.h"

namespace spel::engine {

/// Follows one output. What it asks for is a function of the tokens before a place alone, so
/// proposals that are taken back leave nothing behind. Allocates in reset() only.
class ThinkingClock {
 public:
  /// Another output begins; without a budget nothing is ever due.
  void reset(const std::optional<ThinkingBudget>& budget);

  /// `token` is the output's place `at`, or no longer.
  void push(TokenId token, std::size_t at);
  void pop(std::size_t at);

  /// The token that must stand at `at`, the place after those pushed, if one must.
  [[nodiscard]] std::optional<TokenId> due(std::size_t at) const;

 private:
  std::optional<ThinkingBudget> budget_;
  std::optional<std::size_t> begun_at_;  ///< The place of the first token of the thought …
  std::optional<std::size_t> ended_at_;  ///< … and of the token that ended it.
};

}  // namespace spel::engine
