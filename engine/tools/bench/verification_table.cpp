// B2, and c.
#include <algorithm>
#include <cstdlib>
#include <functional>
#include <set>
#include <string>
#include <vector>

#include "engine/tools/bench/bench_context.h"
#include "engine/tools/bench/pass_timer.h"
#include "engine/tools/model_rig.h"
#include "kernels/blas.h"

namespace spel::engine::tools {
namespace {

constexpr std::size_t kContext = 64;

/// The token counts of the document, and that of the rounds asked for.
std::vector<std::size_t> verified_tokens(std::size_t k) {
  const std::set<std::size_t> counts = {5, 9, 17, k + 1};
  return {counts.begin(), counts.end()};
}

/// Strict against a BLAS, pass by pass; the document's figures are those of the default shape.
void measure_fast(const BenchContext& context, const BenchModel& model) {
  if (!kernels::has_blas()) {
    context.report.line("fast: this build has no BLAS (SPEL_WITH_BLAS=ON)");
    return;
  }
  ModelOptions options;
  options.max_seq = std::min<std::size_t>(1024, model.source->config().max_seq);
  const auto weights = build_weights(*model.source, WeightsDtype::kF32);
  AssembledModel strict = assemble_rig(weights, context.kernels, 1, 1, options);
  options.numerics = Numerics::kFast;
  AssembledModel fast = assemble_rig(weights, context.kernels, 1, 1, options);
  PassTimer strict_timer(*strict.target, kContext);
  PassTimer fast_timer(*fast.target, kContext);
  const std::vector<std::size_t> counts = verified_tokens(context.options.k);
  std::vector<std::function<void()>> bodies = {strict_timer.body(1)};
  for (const std::size_t m : counts) {
    bodies.push_back(strict_timer.body(m));
    bodies.push_back(fast_timer.body(m));
  }
  const auto seconds = take_turns(bodies, context.options.runs, context.options.min_seconds);
  const char* core = std::getenv("OPENBLAS_CORETYPE");
  const std::string suffix = model.label == "default" ? "" : "_" + model.label;
  for (std::size_t i = 0; i < counts.size(); ++i) {
    const std::string m = std::to_string(counts[i]);
    const std::vector<double>& own = seconds[1 + 2 * i];
    const std::vector<double>& blas = seconds[2 + 2 * i];
    const Spread ratio = spread_of(ratios(own, blas));
    context.report.row({"fast f32 (BLAS)", m, fixed(spread_of(blas).median * 1e3, 3),
                        with_range(spread_of(ratios(blas, seconds[0])), 2),
                        "strict/fast " + with_range(ratio, 2)});
    context.report.figure({"strict_over_fast_" + m + suffix,
                           ratio,
                           "x",
                           {{"shape", model.description},
                            {"blas_core_type", core != nullptr ? core : "chosen by the library"}}});
  }
}

void measure(const BenchContext& context, const BenchModel& model, WeightsDtype dtype) {
  const std::string dtype_name = dtype == WeightsDtype::kF32 ? "f32" : "bf16";
  ModelOptions options;
  options.max_seq = std::min<std::size_t>(1024, model.source->config().max_seq);
  AssembledModel rig =
      assemble_rig(build_weights(*model.source, dtype), context.kernels, 1, 1, options);
  PassTimer target(*rig.target, kContext);
  PassTimer draft(*rig.draft, kContext);
  const std::vector<std::size_t> counts = verified_tokens(context.options.k);
  std::vector<std::function<void()>> bodies = {target.body(1), draft.body(1)};
  for (const std::size_t m : counts) {
    bodies.push_back(target.body(m));
  }
  const auto seconds = take_turns(bodies, context.options.runs, context.options.min_seconds);
  const std::vector<double>& token = seconds[0];
  const std::string shape = model.description;

  Report& report = context.report;
  report.row({"strict " + dtype_name + ", AR token", "1", fixed(spread_of(token).median * 1e3, 3),
              "1.00"});
  for (std::size_t i = 0; i < counts.size(); ++i) {
    const Spread v = spread_of(ratios(seconds[2 + i], token));
    const std::string m = std::to_string(counts[i]);
    report.row({"strict " + dtype_name, m, fixed(spread_of(seconds[2 + i]).median * 1e3, 3),
                with_range(v, 2)});
    report.figure({"v_" + model.label + "_" + dtype_name + "_" + m,
                   v,
                   "AR tokens",
                   {{"shape", shape}, {"numerics", "strict"}}});
  }
  const Spread c = spread_of(ratios(seconds[1], token));
  report.row({"draft, over " + dtype_name, "1", fixed(spread_of(seconds[1]).median * 1e3, 3),
              "c = " + with_range(c, 3)});
  const std::string suffix = dtype == WeightsDtype::kF32 ? "" : "_bf16";
  report.figure({"c_" + model.label + "_1" + suffix,
                 c,
                 "AR tokens",
                 {{"shape", shape}, {"target_dtype", dtype_name}, {"draft_threads", "1"}}});
}

}  // namespace

void bench_verification(const BenchContext& context, const BenchModel& model) {
  context.report.progress("B2: verification, " + model.label + " shape");
  context.report.table("B2  one pass of M tokens over one AR token, 1 thread; " + model.description,
                       {{"path", 22}, {"M", 3}, {"ms", 9}, {"v", 24}, {"", 0}});
  measure(context, model, WeightsDtype::kF32);
  measure(context, model, WeightsDtype::kBf16);
  measure_fast(context, model);
}

}  // namespace spel::engine::tools
