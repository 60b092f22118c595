#include "engine/tools/selftest/checks.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

namespace spel::engine::tools {
namespace {

/// Failures listed one by one; the rest are only counted by the suite's verdict.
constexpr std::size_t kFailuresKept = 8;

/// A copy with one value's last bits changed.
std::vector<float> altered(std::span<const float> values) {
  std::vector<float> copy(values.begin(), values.end());
  if (!copy.empty()) {
    copy.back() = copy.back() * 1.5F + 1.0F;
  }
  return copy;
}

std::size_t length_difference(std::size_t a, std::size_t b) { return a > b ? a - b : b - a; }

}  // namespace

std::size_t Checks::differing(std::span<const float> found, std::span<const float> expected) const {
  const std::vector<float> broken = broken_ ? altered(found) : std::vector<float>();
  const std::span<const float> values = broken_ ? std::span<const float>(broken) : found;
  std::size_t count = length_difference(values.size(), expected.size());
  for (std::size_t i = 0; i < std::min(values.size(), expected.size()); ++i) {
    const bool same =
        std::bit_cast<std::uint32_t>(values[i]) == std::bit_cast<std::uint32_t>(expected[i]);
    count += same ? 0 : 1;
  }
  return count;
}

double Checks::max_abs(std::span<const float> found, std::span<const float> expected) const {
  const std::vector<float> broken = broken_ ? altered(found) : std::vector<float>();
  const std::span<const float> values = broken_ ? std::span<const float>(broken) : found;
  if (values.size() != expected.size()) {
    return std::numeric_limits<double>::infinity();
  }
  double largest = 0.0;
  for (std::size_t i = 0; i < values.size(); ++i) {
    const double error = std::fabs(double{values[i]} - double{expected[i]});
    // A NaN compares false with everything and would slip through std::max.
    largest =
        std::isnan(error) ? std::numeric_limits<double>::infinity() : std::max(largest, error);
  }
  return largest;
}

std::size_t Checks::equal_tokens(std::span<const TokenId> found,
                                 std::span<const TokenId> expected) const {
  const std::size_t size = std::min(found.size(), expected.size());
  const std::size_t usable = broken_ && size > 0 ? size - 1 : size;
  const auto end = found.begin() + static_cast<std::ptrdiff_t>(usable);
  return static_cast<std::size_t>(std::mismatch(found.begin(), end, expected.begin()).first -
                                  found.begin());
}

void Checks::same_bits(const std::string& what, std::span<const float> found,
                       std::span<const float> expected) {
  const std::size_t count = differing(found, expected);
  compared_ += expected.size();
  differed_ += count;
  require(count == 0, what + ": " + std::to_string(count) + " of " +
                          std::to_string(expected.size()) + " values differ");
}

std::size_t Checks::same_tokens(const std::string& what, std::span<const TokenId> found,
                                std::span<const TokenId> expected) {
  const std::size_t equal = equal_tokens(found, expected);
  require(found.size() == expected.size() && equal == expected.size(),
          what + ": " + std::to_string(equal) + " of " + std::to_string(expected.size()) +
              " tokens agree, " + std::to_string(found.size()) + " found");
  return equal;
}

void Checks::require(bool holds, const std::string& what) {
  if (!holds && failures_.size() < kFailuresKept) {
    failures_.push_back(what);
  }
}

void Checks::note(const std::string& text) { notes_.push_back(text); }

void Checks::skip(const std::string& why) {
  skipped_ = true;
  notes_.push_back(why);
}

}  // namespace spel::engine::tools
