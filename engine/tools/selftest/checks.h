// What a suite measures, and whether it held.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "engine/types.h"

namespace spel::engine::tools {

/// Collects the comparisons of one suite. With `broken`, one value of every comparison is altered
/// first: a suite that still passes then compares nothing.
class Checks {
 public:
  explicit Checks(bool broken) : broken_(broken) {}

  /// Values that differ in any bit; a difference in length counts as one each.
  [[nodiscard]] std::size_t differing(std::span<const float> found,
                                      std::span<const float> expected) const;
  /// Largest absolute difference; infinite for a NaN or another length.
  [[nodiscard]] double max_abs(std::span<const float> found, std::span<const float> expected) const;
  /// Tokens equal from the start.
  [[nodiscard]] std::size_t equal_tokens(std::span<const TokenId> found,
                                         std::span<const TokenId> expected) const;

  /// Fails the suite unless all bits are the same. `what` says of what.
  void same_bits(const std::string& what, std::span<const float> found,
                 std::span<const float> expected);
  /// The same for tokens; returns how many are equal.
  std::size_t same_tokens(const std::string& what, std::span<const TokenId> found,
                          std::span<const TokenId> expected);
  void require(bool holds, const std::string& what);

  /// Adds to the line the suite prints.
  void note(const std::string& text);
  /// Adds a line of its own below that one.
  void row(const std::string& text) { rows_.push_back(text); }
  /// The suite cannot run in this build or on this machine.
  void skip(const std::string& why);

  [[nodiscard]] bool passed() const noexcept { return failures_.empty(); }
  [[nodiscard]] bool skipped() const noexcept { return skipped_; }
  [[nodiscard]] const std::vector<std::string>& failures() const noexcept { return failures_; }
  [[nodiscard]] const std::vector<std::string>& notes() const noexcept { return notes_; }
  [[nodiscard]] const std::vector<std::string>& rows() const noexcept { return rows_; }
  /// Values compared by same_bits() so far, and how many differed.
  [[nodiscard]] std::size_t compared() const noexcept { return compared_; }
  [[nodiscard]] std::size_t differed() const noexcept { return differed_; }

 private:
  bool broken_;
  bool skipped_ = false;
  std::size_t compared_ = 0;
  std::size_t differed_ = 0;
  std::vector<std::string> failures_;
  std::vector<std::string> notes_;
  std::vector<std::string> rows_;
};

}  // namespace spel::engine::tools
