#include "engine/tools/bench/timing.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "engine/types.h"

namespace spel::engine::tools {
namespace {

double seconds_of(const std::function<void()>& body, std::size_t repeats) {
  const auto begin = Clock::now();
  for (std::size_t i = 0; i < repeats; ++i) {
    body();
  }
  return seconds_between(begin, Clock::now());
}

/// After larger work the machine is slow for some milliseconds: a turn begins when they are over.
void settle(const std::function<void()>& body) {
  constexpr double kSettleSeconds = 0.01;
  for (const auto begin = Clock::now(); seconds_between(begin, Clock::now()) < kSettleSeconds;) {
    body();
  }
}

/// Calls that together take `min_seconds`; as many calls warm up what the body touches.
std::size_t repeats_for(const std::function<void()>& body, double min_seconds) {
  std::size_t repeats = 1;
  double seconds = seconds_of(body, repeats);
  while (seconds < min_seconds / 2) {
    repeats *= 2;
    seconds = seconds_of(body, repeats);
  }
  const double per_call = seconds / static_cast<double>(repeats);
  return std::max<std::size_t>(1, static_cast<std::size_t>(std::ceil(min_seconds / per_call)));
}

}  // namespace

Spread spread_of(std::vector<double> values) {
  Spread spread;
  if (values.empty()) {
    return spread;
  }
  std::sort(values.begin(), values.end());
  const std::size_t middle = values.size() / 2;
  spread.median =
      values.size() % 2 == 1 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
  spread.low = values.front();
  spread.high = values.back();
  spread.runs = values.size();
  return spread;
}

std::vector<double> ratios(std::span<const double> a, std::span<const double> b) {
  std::vector<double> out(std::min(a.size(), b.size()));
  for (std::size_t i = 0; i < out.size(); ++i) {
    out[i] = a[i] / b[i];
  }
  return out;
}

std::vector<double> scaled(std::span<const double> values, double factor) {
  std::vector<double> out(values.begin(), values.end());
  for (double& value : out) {
    value *= factor;
  }
  return out;
}

std::vector<double> inverse(std::span<const double> values, double factor) {
  std::vector<double> out(values.begin(), values.end());
  for (double& value : out) {
    value = factor / value;
  }
  return out;
}

std::vector<std::vector<double>> take_turns(std::span<const std::function<void()>> bodies,
                                            std::size_t runs, double min_seconds) {
  std::vector<std::size_t> repeats;
  for (const auto& body : bodies) {
    repeats.push_back(repeats_for(body, min_seconds));
  }
  std::vector<std::vector<double>> seconds(bodies.size());
  for (std::size_t run = 0; run < runs; ++run) {
    for (std::size_t i = 0; i < bodies.size(); ++i) {
      settle(bodies[i]);
      seconds[i].push_back(seconds_of(bodies[i], repeats[i]) / static_cast<double>(repeats[i]));
    }
  }
  return seconds;
}

ReadBandwidth::ReadBandwidth(std::size_t bytes) : words_(bytes / sizeof(std::uint64_t), 1) {}

// Several streams at once, each prefetched ahead: one stream alone leaves the memory idle.
std::uint64_t ReadBandwidth::read() const {
  constexpr std::size_t kStreams = 4;
  constexpr std::size_t kLineWords = 8;
  constexpr std::size_t kAheadWords = 64 * kLineWords;
  const std::size_t part = words_.size() / kStreams / kLineWords * kLineWords;
  std::array<std::uint64_t, kStreams * kLineWords> sums{};
  for (std::size_t at = 0; at < part; at += kLineWords) {
    for (std::size_t stream = 0; stream < kStreams; ++stream) {
      const std::uint64_t* const line = words_.data() + stream * part + at;
      __builtin_prefetch(line + kAheadWords);
      for (std::size_t i = 0; i < kLineWords; ++i) {
        sums[stream * kLineWords + i] += line[i];
      }
    }
  }
  std::uint64_t sum = 0;
  for (const std::uint64_t partial : sums) {
    sum += partial;
  }
  return sum;
}

}  // namespace spel::engine::tools
