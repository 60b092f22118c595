// The few words every part of the engine shares.
#pragma once

#include <chrono>
#include <cstdint>

namespace spel::engine {

using TokenId = std::int32_t;
using Clock = std::chrono::steady_clock;

[[nodiscard]] inline double seconds_between(Clock::time_point from, Clock::time_point to) {
  return std::chrono::duration<double>(to - from).count();
}

}  // namespace spel::engine
