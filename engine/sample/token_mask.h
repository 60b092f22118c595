// Which ids of a vocabulary may be chosen at all.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "engine/types.h"

namespace spel::engine {

/// Ids without a token, say: they take no part in any choice, filter or probability. Not to be
/// changed while a Chooser holds it; then safe from any thread.
class TokenMask {
 public:
  /// Every id below `vocab_size` is allowed.
  explicit TokenMask(std::size_t vocab_size);

  /// Forbids an id below vocab_size(), if it is not forbidden yet.
  void forbid(std::size_t id);

  [[nodiscard]] std::size_t vocab_size() const { return vocab_size_; }
  [[nodiscard]] bool allows(TokenId token) const {
    const auto id = static_cast<std::size_t>(token);
    return (forbidden_[id / 64] >> (id % 64) & 1U) == 0;
  }
  /// One past the last allowed id; 0 for none.
  [[nodiscard]] std::size_t end() const { return end_; }
  /// Whether an id below end() is forbidden.
  [[nodiscard]] bool has_holes() const { return allowed_ < end_; }
  /// Puts NaN in the places of forbidden ids below end(). `row` has end() values.
  void blank(std::span<float> row) const;

 private:
  std::size_t vocab_size_;
  std::size_t end_;
  std::size_t allowed_;                   ///< Ids.
  std::vector<std::uint64_t> forbidden_;  ///< A bit for each id.
};

}  // namespace spel::engine
