// When a client that found the queue full had better come again.
#pragma once

#include <cstddef>
#include <cstdint>

namespace spel::server {

struct QueueState {
  std::size_t waiting = 0;
  std::size_t sequences = 1;      ///< Running at once.
  double service_seconds = 0.0;   ///< A request in its place, lately; 0: none has ended yet.
  std::size_t tokens_wanted = 0;  ///< By the request refused: what is known where nothing is
  double token_seconds = 0.0;     ///< measured; at the speed of one sequence alone.
};

/// The time in which what waits has left the queue, from 1 second to kRetryAfterMax. Long enough
/// that a client's second or third try finds a place, which is as often as most of them try.
[[nodiscard]] std::uint32_t retry_after_seconds(const QueueState& queue);

/// More is not taken seriously by OpenAI's clients, which then choose for themselves.
inline constexpr std::uint32_t kRetryAfterMax = 60;

/// A mean in which each request counts for this much and those before it for less and less.
inline constexpr double kServiceWeight = 0.1;

}  // namespace spel::server
