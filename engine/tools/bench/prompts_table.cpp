// Acceptance and speedup on prompts of the user's own.
#include <algorithm>
#include <string>
#include <vector>

#include "config/base/error.h"
#include "engine/tools/bench/bench_context.h"
#include "engine/tools/bench/engine_modes.h"
#include "engine/tools/model_rig.h"
#include "engine/tools/prompts.h"

namespace spel::engine::tools {

void bench_prompts(const BenchContext& context, const BenchModel& model) {
  const BenchOptions& options = context.options;
  Report& report = context.report;
  const ModelConfig& config = model.source->config();
  std::size_t longest = 0;
  std::vector<std::vector<TokenId>> prompts;
  for (const std::string& text : read_prompts(*options.prompts_file)) {
    prompts.push_back(tokenizer_for(spel_hybrid_spec(config))->encode(text));
    longest = std::max(longest, prompts.back().size());
  }
  ModelOptions model_options;
  model_options.max_seq =
      std::min<std::size_t>(longest + options.decode_tokens + 1, config.max_seq);
  EngineConfig engine_config;
  engine_config.sequences = 1;
  engine_config.prefix_cache_entries = 0;
  report.progress(std::to_string(prompts.size()) + " prompts of " + *options.prompts_file);
  EngineRig rig(build_weights(*model.source, WeightsDtype::kBf16), context.kernels, 1,
                options.draft_threads, model_options, engine_config);
  const std::vector<Mode> modes = {plain_mode(), raw_mode(options.k),
                                   governed_mode(GovernorKind::kAdaptive, options.k)};
  const auto results = run_modes(*rig.engine, modes, prompts, options.decode_tokens,
                                 options.temperature, options.runs);
  report.table("Prompts  " + *options.prompts_file + ", " + std::to_string(prompts.size()) +
                   " prompts, temperature " + fixed(options.temperature, 2) + ", weights bf16; " +
                   model.description,
               {{"path", 22},
                {"K", 2},
                {"tok/s", 18},
                {"vs AR", 18},
                {"whole request", 18},
                {"alpha", 6},
                {"proposed", 8}});
  for (std::size_t i = 0; i < modes.size(); ++i) {
    const GenerationStats& s = results[i].totals;
    const Spread speedup =
        spread_of(ratios(results[0].seconds_per_token, results[i].seconds_per_token));
    const Spread whole =
        spread_of(ratios(results[0].seconds_per_request, results[i].seconds_per_request));
    report.row({modes[i].name, i == 0 ? "-" : std::to_string(options.k),
                with_range(spread_of(inverse(results[i].seconds_per_token, 1.0)), 0),
                with_range(speedup, 2), with_range(whole, 2), fixed(s.alpha(), 3),
                std::to_string(s.proposed)});
    if (i > 0) {
      report.figure({i == 1 ? "prompts_raw_speedup_request" : "prompts_governed_speedup_request",
                     whole,
                     "x plain",
                     {{"file", *options.prompts_file},
                      {"clock", "whole request, prompt included"},
                      {"k", std::to_string(options.k)}}});
      report.figure({i == 1 ? "prompts_raw_speedup" : "prompts_governed_speedup",
                     speedup,
                     "x plain",
                     {{"file", *options.prompts_file},
                      {"alpha", fixed(s.alpha(), 4)},
                      {"k", std::to_string(options.k)},
                      {"temperature", fixed(options.temperature, 2)}}});
    }
  }
  const double alpha = results[1].totals.alpha();
  report.figure({"prompts_alpha",
                 {alpha, alpha, alpha, 1},
                 "accepted/proposed",
                 {{"file", *options.prompts_file},
                  {"k", std::to_string(options.k)},
                  {"temperature", fixed(options.temperature, 2)}}});
}

}  // namespace spel::engine::tools
