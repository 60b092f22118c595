// Acceptance and speed over the last rounds, for the gauges.
#pragma once

#include <array>
#include <cstddef>

namespace spel::engine {

/// Two rings of the last 64 rounds and steps. Not thread-safe.
class RecentRounds {
 public:
  void add_round(std::size_t proposed, std::size_t accepted);
  void add_step(std::size_t emitted, double seconds);
  [[nodiscard]] double acceptance() const;
  [[nodiscard]] double tokens_per_second() const;

 private:
  static constexpr std::size_t kWindow = 64;
  struct Round {
    std::size_t proposed = 0;
    std::size_t accepted = 0;
  };
  struct Step {
    std::size_t emitted = 0;
    double seconds = 0.0;
  };
  std::array<Round, kWindow> rounds_{};
  std::array<Step, kWindow> steps_{};
  std::size_t next_round_ = 0;
  std::size_t next_step_ = 0;
};

}  // namespace spel::engine
