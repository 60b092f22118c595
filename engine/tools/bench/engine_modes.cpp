#include "engine/tools/bench/engine_modes.h"

#include <algorithm>

#include "config/base/error.h"
#include "engine/tools/model_rig.h"

namespace spel::engine::tools {
namespace {

void add_counts(const GenerationStats& one, GenerationStats& totals) {
  totals.completion_tokens += one.completion_tokens;
  totals.decode_seconds += one.decode_seconds;
  totals.rounds += one.rounds;
  totals.ar_rounds += one.ar_rounds;
  totals.proposed += one.proposed;
  totals.accepted += one.accepted;
  totals.discarded += one.discarded;
  totals.trips += one.trips;
  totals.resumes += one.resumes;
  totals.k = std::max(totals.k, one.k);
  totals.c = one.c;
  totals.v = one.v;
  totals.accepted_by_position.resize(
      std::max(totals.accepted_by_position.size(), one.accepted_by_position.size()));
  for (std::size_t i = 0; i < one.accepted_by_position.size(); ++i) {
    totals.accepted_by_position[i] += one.accepted_by_position[i];
  }
}

}  // namespace

Mode plain_mode() {
  Mode mode{"AR target", {}};
  mode.speculation.enabled = false;
  return mode;
}

Mode raw_mode(std::size_t k) {
  Mode mode{"raw", {}};
  mode.speculation.k = k;
  mode.speculation.governor = GovernorKind::kOff;
  return mode;
}

Mode governed_mode(GovernorKind governor, std::size_t k) {
  Mode mode{"governed (" + std::string(name_of(governor)) + ")", {}};
  mode.speculation.k = k;
  mode.speculation.governor = governor;
  return mode;
}

std::vector<ModeResult> run_modes(Engine& engine, const std::vector<Mode>& modes,
                                  const std::vector<std::vector<TokenId>>& prompts,
                                  std::size_t max_tokens, float temperature, std::size_t runs) {
  std::vector<ModeResult> results(modes.size());
  std::vector<std::vector<TokenId>> outputs(prompts.size());
  for (std::size_t run = 0; run <= runs; ++run) {
    for (std::size_t mode = 0; mode < modes.size(); ++mode) {
      GenerationStats totals;
      std::size_t decoded = 0;
      double whole_seconds = 0.0;
      for (std::size_t i = 0; i < prompts.size(); ++i) {
        GenerationRequest request;
        request.prompt = prompts[i];
        request.max_tokens = max_tokens;
        request.sampling.temperature = temperature;
        request.sampling.seed = i;
        request.speculation = modes[mode].speculation;
        request.ignore_eos = true;
        const auto begin = Clock::now();
        Generated generated = run_request(engine, std::move(request));
        whole_seconds += seconds_between(begin, Clock::now());
        add_counts(generated.finish.stats, totals);
        decoded += generated.tokens.size() - std::min<std::size_t>(1, generated.tokens.size());
        if (outputs[i].empty()) {
          outputs[i] = std::move(generated.tokens);
        } else if (outputs[i] != generated.tokens) {
          throw Error(ErrorCode::kInternal, modes[mode].name + " changed the output");
        }
      }
      if (run > 0) {
        // The first token belongs to the prefill.
        results[mode].seconds_per_token.push_back(
            totals.decode_seconds / static_cast<double>(std::max<std::size_t>(1, decoded)));
        results[mode].seconds_per_request.push_back(whole_seconds /
                                                    static_cast<double>(prompts.size()));
        results[mode].totals = std::move(totals);
      }
    }
  }
  return results;
}

}  // namespace spel::engine::tools
