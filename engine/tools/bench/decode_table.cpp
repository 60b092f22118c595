// B3.
#include <algorithm>
#include <functional>
#include <string>
#include <vector>

#include "config/base/limits.h"
#include "engine/speculate/cost_model.h"
#include "engine/tools/bench/bench_context.h"
#include "engine/tools/bench/engine_modes.h"
#include "engine/tools/bench/pass_timer.h"
#include "engine/tools/forced_rounds.h"
#include "engine/tools/model_rig.h"
#include "engine/tools/prompts.h"

namespace spel::engine::tools {
namespace {

constexpr std::size_t kRandomPromptTokens = 64;
constexpr std::uint64_t kPromptSeed = 42;

/// c and v(K) of one number of draft threads, measured for the projection.
struct UnitCosts {
  Spread c;
  Spread v;
};

struct Part {
  const BenchContext& context;
  const BenchModel& model;
  std::shared_ptr<const ModelWeights> weights;
  std::string dtype;   ///< "f32" or "bf16".
  std::string suffix;  ///< Of figure names: "" for f32, the document's, or "_bf16".
  ModelOptions options;
};

std::string acceptance_text(const GenerationStats& s) {
  if (s.rounds == 0 && s.ar_rounds > 0) {
    return "-";
  }
  return fixed(s.alpha(), 3) + " " + std::to_string(s.accepted) + "/" + std::to_string(s.proposed);
}

std::string rounds_text(const GenerationStats& s) {
  return std::to_string(s.rounds) + " + " + std::to_string(s.ar_rounds) + " plain, trips " +
         std::to_string(s.trips) + ", resumes " + std::to_string(s.resumes);
}

std::string by_position(const GenerationStats& s) {
  std::string text = "accepted by position, of " + std::to_string(s.rounds) + " rounds:";
  for (const std::size_t count : s.accepted_by_position) {
    text += " " + std::to_string(count);
  }
  return text;
}

UnitCosts measure_costs(const Part& part, std::size_t threads) {
  const BenchOptions& options = part.context.options;
  AssembledModel rig = assemble_rig(part.weights, part.context.kernels, 1, threads, part.options);
  PassTimer target(*rig.target, kRandomPromptTokens);
  PassTimer draft(*rig.draft, kRandomPromptTokens);
  const std::vector<std::function<void()>> bodies = {target.body(1), draft.body(1),
                                                     target.body(options.k + 1)};
  const auto seconds = take_turns(bodies, options.runs, options.min_seconds);
  const UnitCosts costs{spread_of(ratios(seconds[1], seconds[0])),
                        spread_of(ratios(seconds[2], seconds[0]))};
  part.context.report.row({"draft only", std::to_string(threads), "-",
                           with_range(spread_of(inverse(seconds[1], 1.0)), 0),
                           "c = " + with_range(costs.c, 3), "-", "-", "-", "-"});
  if (threads > 1) {
    part.context.report.figure(
        {"c_" + part.model.label + "_" + std::to_string(threads) + part.suffix,
         costs.c,
         "AR tokens",
         {{"shape", part.model.description}}});
  }
  return costs;
}

/// One prompt in every mode at one number of draft threads.
void decode_prompt(const Part& part, const std::string& name, const std::vector<TokenId>& prompt,
                   std::size_t threads, const UnitCosts& costs) {
  const BenchOptions& options = part.context.options;
  Report& report = part.context.report;
  report.progress("B3: " + name + " prompt, " + part.dtype + ", " + std::to_string(threads) +
                  " draft thread(s)");
  EngineConfig config;
  config.sequences = 1;
  config.prefix_cache_entries = 0;  // Every run prefills; keeping states would only take time.
  EngineRig rig(part.weights, part.context.kernels, 1, threads, part.options, config);
  std::vector<Mode> modes = {plain_mode(), raw_mode(options.k),
                             governed_mode(GovernorKind::kAdaptive, options.k),
                             governed_mode(GovernorKind::kTrip, options.k)};
  if (options.k < limits::kSpecKMax) {
    modes.push_back(governed_mode(GovernorKind::kAdaptive, limits::kSpecKMax));
  }
  const auto results = run_modes(*rig.engine, modes, {prompt}, options.decode_tokens,
                                 options.temperature, options.runs);
  std::vector<Spread> speedups;
  std::vector<Spread> whole;
  for (std::size_t i = 0; i < modes.size(); ++i) {
    const GenerationStats& s = results[i].totals;
    const bool plain = !modes[i].speculation.enabled;
    const bool fixed_k = modes[i].speculation.governor == GovernorKind::kOff && !plain;
    speedups.push_back(
        spread_of(ratios(results[0].seconds_per_token, results[i].seconds_per_token)));
    whole.push_back(
        spread_of(ratios(results[0].seconds_per_request, results[i].seconds_per_request)));
    const double projected =
        projected_speedup(s.alpha(), options.k, costs.c.median, costs.v.median);
    report.row({name + ", " + modes[i].name, plain ? "-" : std::to_string(threads),
                plain ? "-" : std::to_string(modes[i].speculation.k),
                with_range(spread_of(inverse(results[i].seconds_per_token, 1.0)), 0),
                with_range(speedups.back(), 2), with_range(whole.back(), 2),
                fixed_k ? fixed(projected, 2) : "-", acceptance_text(s),
                plain ? "-" : rounds_text(s)});
  }
  report.line(name + ", raw, " + by_position(results[1].totals));
  const auto add_figure = [&](const std::string& figure_name, std::size_t mode,
                              const Spread& speedup, const std::string& clock) {
    const GenerationStats& s = results[mode].totals;
    report.figure(
        {figure_name + part.suffix + (threads == 1 ? "" : "_threads_" + std::to_string(threads)),
         speedup,
         "x plain",
         {{"shape", part.model.description},
          {"clock", clock},
          {"prompt_tokens", std::to_string(prompt.size())},
          {"completion_tokens", std::to_string(options.decode_tokens)},
          {"weights_dtype", part.dtype},
          {"k", std::to_string(modes[mode].speculation.k)},
          {"draft_threads", std::to_string(threads)},
          {"alpha", fixed(s.alpha(), 3)},
          {"rounds", std::to_string(s.rounds)},
          {"ar_rounds", std::to_string(s.ar_rounds)}}});
  };
  const auto figure = [&](const std::string& figure_name, std::size_t mode) {
    add_figure(figure_name, mode, speedups[mode], "first token to last");
    add_figure(figure_name + "_request", mode, whole[mode], "whole request, prompt included");
  };
  const bool random = name == "random";
  figure(random ? "raw_random_ratio" : "raw_indomain_speedup", 1);
  figure(random ? "trip_random_ratio" : "trip_indomain_speedup", 3);
  figure(random ? "governed_random_ratio" : "governed_indomain_speedup", 2);
  // The governor's own K: it may go as far as the engine does.
  figure(random ? "governed_random_ratio_k16" : "spec_indomain_speedup", modes.size() - 1);
}

/// The ceilings: both models really run, acceptance is decreed.
void forced_rows(const Part& part, const std::vector<TokenId>& prompt, const UnitCosts& costs) {
  const BenchOptions& options = part.context.options;
  Report& report = part.context.report;
  report.progress("B3: forced acceptance, " + part.dtype);
  AssembledModel rig = assemble_rig(part.weights, part.context.kernels, 1, 1, part.options);
  const auto copy =
      make_target_model(part.weights, part.context.kernels, *rig.draft_pool, part.options);
  struct Ceiling {
    std::string name;
    double alpha;
    ForcedRounds rounds;
    std::vector<double> seconds;
    ForcedResult last;
  };
  std::vector<Ceiling> ceilings;
  const auto add = [&](const std::string& name, CausalModel& draft, double alpha) {
    ceilings.push_back({name, alpha, ForcedRounds(*rig.target, draft, options.k), {}, {}});
  };
  add("CEILING forced, draft", *rig.draft, 0.75);
  add("CEILING forced, draft", *rig.draft, 1.0);
  add("CEILING forced, full copy", *copy, 1.0);
  std::vector<double> plain;
  const auto state = rig.target->make_state();
  const auto start = rig.target->make_state();
  (void)feed(*rig.target, *start, prompt, part.options.max_batch_rows);
  for (std::size_t run = 0; run < options.runs; ++run) {
    state->copy_from(*start);
    const auto begin = Clock::now();
    (void)decode_plainly(*rig.target, *state, prompt.back(), options.decode_tokens);
    plain.push_back(seconds_between(begin, Clock::now()));
    for (Ceiling& ceiling : ceilings) {
      ceiling.rounds.start(prompt);
      ceiling.last = ceiling.rounds.run(options.decode_tokens, ceiling.alpha);
      ceiling.seconds.push_back(ceiling.last.seconds);
    }
  }
  const auto tokens = static_cast<double>(options.decode_tokens);
  report.row({"AR target, model alone", "-", "-", with_range(spread_of(inverse(plain, tokens)), 0),
              "1.00", "-", "-", "-", "-"});
  for (const Ceiling& ceiling : ceilings) {
    const Spread speedup = spread_of(ratios(plain, ceiling.seconds));
    const bool full_copy = &ceiling == &ceilings.back();
    const double projected = projected_speedup(ceiling.last.alpha(), options.k,
                                               full_copy ? 1.0 : costs.c.median, costs.v.median);
    report.row({ceiling.name, "1", std::to_string(options.k),
                with_range(spread_of(inverse(ceiling.seconds, tokens)), 0), with_range(speedup, 2),
                "-", fixed(projected, 2),
                fixed(ceiling.last.alpha(), 3) + " " + std::to_string(ceiling.last.accepted) + "/" +
                    std::to_string(ceiling.last.proposed),
                std::to_string(ceiling.last.rounds)});
    report.figure({(full_copy ? "ceiling_full_copy_" : "ceiling_forced_") +
                       std::string(ceiling.alpha < 1.0 ? "075" : "100") + part.suffix,
                   speedup,
                   "x plain",
                   {{"shape", part.model.description},
                    {"weights_dtype", part.dtype},
                    {"k", std::to_string(options.k)},
                    {"note", "acceptance forced: a ceiling, not decoding"}}});
  }
}

void decode_dtype(const BenchContext& context, const BenchModel& model, WeightsDtype dtype) {
  const bool f32 = dtype == WeightsDtype::kF32;
  const ModelConfig& config = model.source->config();
  Part part{
      context, model, build_weights(*model.source, dtype), f32 ? "f32" : "bf16", f32 ? "" : "_bf16",
      {}};
  part.options.max_seq = std::min<std::size_t>(1024, config.max_seq);
  context.report.table("B3  decoding, weights " + part.dtype + "; " + model.description,
                       {{"path", 32},
                        {"thr", 3},
                        {"K", 2},
                        {"tok/s", 18},
                        {"vs AR", 24},
                        {"whole request", 24},
                        {"proj.", 5},
                        {"alpha", 13},
                        {"rounds", 0}});
  const auto random = random_prompt(kRandomPromptTokens, config.vocab_size, kPromptSeed);
  UnitCosts single;
  for (std::size_t threads = 1; threads <= context.options.draft_threads; ++threads) {
    const UnitCosts costs = measure_costs(part, threads);
    decode_prompt(part, "random", random, threads, costs);
    const bool fits = recall_prompt().size() + context.options.decode_tokens < config.max_seq;
    if (config.vocab_size == kAsciiTokens && fits) {
      decode_prompt(part, "in-domain",
                    tokenizer_for(spel_hybrid_spec(config))->encode(recall_prompt()), threads,
                    costs);
    }
    single = threads == 1 ? costs : single;
  }
  forced_rows(part, random, single);
}

}  // namespace

void bench_decode(const BenchContext& context, const BenchModel& model) {
  decode_dtype(context, model, WeightsDtype::kF32);
  decode_dtype(context, model, WeightsDtype::kBf16);
}

}  // namespace spel::engine::tools
