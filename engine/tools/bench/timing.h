// Timing by turns: whatever is compared runs A B A B …, so that a wandering clock or a busy
// neighbour meets both alike.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

namespace spel::engine::tools {

/// The middle of repeated measurements, and the extremes.
struct Spread {
  double median = 0.0;
  double low = 0.0;
  double high = 0.0;
  std::size_t runs = 0;
};

[[nodiscard]] Spread spread_of(std::vector<double> values);

/// Run by run: a[i] / b[i], so that both halves of a ratio were measured next to each other.
[[nodiscard]] std::vector<double> ratios(std::span<const double> a, std::span<const double> b);

/// value[i] * factor
[[nodiscard]] std::vector<double> scaled(std::span<const double> values, double factor);
/// factor / value[i]
[[nodiscard]] std::vector<double> inverse(std::span<const double> values, double factor);

/// Seconds per call of each body, [body][run]. Every run calls each body in turn, repeating short
/// ones until `min_seconds` have been measured; the first round only warms up.
[[nodiscard]] std::vector<std::vector<double>> take_turns(
    std::span<const std::function<void()>> bodies, std::size_t runs, double min_seconds);

/// Bytes per second of one core reading memory it has not cached.
class ReadBandwidth {
 public:
  /// Allocates `bytes`, which should be far more than the last-level cache.
  explicit ReadBandwidth(std::size_t bytes);

  /// Reads all of it once; returns something that depends on every byte.
  std::uint64_t read() const;
  [[nodiscard]] std::size_t bytes() const noexcept { return words_.size() * sizeof(words_[0]); }

 private:
  std::vector<std::uint64_t> words_;
};

}  // namespace spel::engine::tools
