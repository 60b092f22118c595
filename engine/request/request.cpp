#include "engine/request/request.h"

#include <new>

namespace spel::engine {

Failure failure_of(const std::exception& error) {
  if (dynamic_cast<const std::bad_alloc*>(&error) != nullptr) {
    return {.out_of_memory = true, .text = "there was not enough memory for it"};
  }
  return {.out_of_memory = false, .text = std::string("the engine failed: ") + error.what()};
}

double GenerationStats::tokens_per_second() const {
  // The first token belongs to the prefill, unless there is no other.
  if (completion_tokens > 1 && decode_seconds > 0.0) {
    return static_cast<double>(completion_tokens - 1) / decode_seconds;
  }
  return prefill_seconds > 0.0 ? static_cast<double>(completion_tokens) / prefill_seconds : 0.0;
}

double GenerationStats::speedup() const {
  if (rounds == 0 || plain_seconds <= 0.0 || step_seconds <= 0.0) {
    return 0.0;
  }
  // More than a pass emits cannot be gained, so such a quotient measures something else.
  const double tokens_per_pass =
      static_cast<double>(completion_tokens - 1) / static_cast<double>(rounds + ar_rounds);
  const double gain = plain_seconds / step_seconds;
  return gain <= tokens_per_pass ? gain : 0.0;
}

}  // namespace spel::engine
