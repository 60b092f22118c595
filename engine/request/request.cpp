#include "engine/request/request.h"

#include <array>
#include <new>

namespace spel::engine {
namespace {

constexpr std::array<std::string_view, 3> kGovernorNames = {"off", "trip", "adaptive"};
constexpr std::array<std::string_view, 5> kFinishReasonNames = {"stop", "length", "cancelled",
                                                                "deadline", "error"};

}  // namespace

std::string_view governor_name(GovernorKind kind) {
  return kGovernorNames[static_cast<std::size_t>(kind)];
}

std::optional<GovernorKind> parse_governor(std::string_view name) {
  for (std::size_t i = 0; i < kGovernorNames.size(); ++i) {
    if (kGovernorNames[i] == name) {
      return static_cast<GovernorKind>(i);
    }
  }
  return std::nullopt;
}

std::string_view finish_reason_name(FinishReason reason) {
  return kFinishReasonNames[static_cast<std::size_t>(reason)];
}

std::string failure_text(const std::exception& error) {
  return dynamic_cast<const std::bad_alloc*>(&error) != nullptr
             ? "there was not enough memory for it"
             : std::string("the engine failed: ") + error.what();
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
