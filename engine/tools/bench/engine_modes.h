// The same prompts decoded in several ways, by turns, through the engine a server would run.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "engine/engine.h"
#include "engine/request/request.h"

namespace spel::engine::tools {

/// A way to decode.
struct Mode {
  std::string name;
  SpeculationParams speculation;
};

[[nodiscard]] Mode plain_mode();
/// Always k proposals.
[[nodiscard]] Mode raw_mode(std::size_t k);
[[nodiscard]] Mode governed_mode(GovernorKind governor, std::size_t k);

struct ModeResult {
  std::vector<double> seconds_per_token;  ///< [run], over all prompts: first token to last.
  std::vector<double>
      seconds_per_request;  ///< [run], mean: submitting to the end, prompt included.
  GenerationStats totals;   ///< Counts of one run over all prompts.
};

/// Decodes every prompt in every mode, `runs` times after one round that is not counted. Output is
/// the same in every mode; throws Error(kInternal) if it ever is not.
[[nodiscard]] std::vector<ModeResult> run_modes(Engine& engine, const std::vector<Mode>& modes,
                                                const std::vector<std::vector<TokenId>>& prompts,
                                                std::size_t max_tokens, float temperature,
                                                std::size_t runs);

}  // namespace spel::engine::tools
