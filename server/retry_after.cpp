#include "server/retry_after.h"

#include <algorithm>
#include <cmath>

namespace spel::server {

std::uint32_t retry_after_seconds(const QueueState& queue) {
  const auto waiting = static_cast<double>(queue.waiting);
  const double seconds =
      queue.service_seconds > 0.0
          ? waiting * queue.service_seconds / static_cast<double>(queue.sequences)
          : waiting * static_cast<double>(queue.tokens_wanted) * queue.token_seconds;
  return static_cast<std::uint32_t>(
      std::clamp(std::ceil(seconds), 1.0, static_cast<double>(kRetryAfterMax)));
}

}  // namespace spel::server
