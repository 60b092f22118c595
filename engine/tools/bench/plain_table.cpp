// Plain decoding against what the memory gives.
#include <algorithm>
#include <functional>
#include <string>
#include <vector>

#include "engine/tools/bench/bench_context.h"
#include "engine/tools/bench/pass_timer.h"
#include "engine/tools/model_rig.h"

namespace spel::engine::tools {
namespace {

constexpr std::size_t kContext = 64;

/// What one token reads of the target's matrices.
double token_bytes(const ModelWeights& weights) {
  std::size_t bytes = weights.shared.lm_head.bytes();
  for_each_matrix(weights.target,
                  [&](const kernels::Matrix& matrix) { bytes += kernels::bytes_of(matrix); });
  return static_cast<double>(bytes);
}

}  // namespace

void bench_plain(const BenchContext& context, const BenchModel& model) {
  context.report.progress("plain decoding, " + model.label + " shape");
  ModelOptions options;
  options.max_seq = std::min<std::size_t>(1024, model.source->config().max_seq);
  const auto f32 = build_weights(*model.source, WeightsDtype::kF32);
  AssembledModel one = assemble_rig(f32, context.kernels, 1, 1, options);
  AssembledModel two = assemble_rig(f32, context.kernels, 2, 1, options);
  AssembledModel half = assemble_rig(build_weights(*model.source, WeightsDtype::kBf16),
                                     context.kernels, 1, 1, options);
  PassTimer one_timer(*one.target, kContext);
  PassTimer two_timer(*two.target, kContext);
  PassTimer half_timer(*half.target, kContext);
  const ReadBandwidth memory(context.options.read_bytes);
  std::uint64_t sum = 0;
  const std::vector<std::function<void()>> bodies = {
      one_timer.body(1), [&] { sum += memory.read(); }, half_timer.body(1), two_timer.body(1)};
  const auto seconds = take_turns(bodies, context.options.runs, context.options.min_seconds);
  if (sum == 0) {
    context.report.progress("the memory read as zeros");  // Keeps the reads from being left out.
  }
  const double bytes = token_bytes(*f32);
  const auto read_rate = inverse(seconds[1], static_cast<double>(memory.bytes()));
  const auto weight_rate = inverse(seconds[0], bytes);
  const Spread bandwidth = spread_of(scaled(read_rate, 1e-9));
  const Spread fraction = spread_of(ratios(weight_rate, read_rate));
  const Spread f32_rate = spread_of(inverse(seconds[0], 1.0));
  const Spread bf16_rate = spread_of(inverse(seconds[2], 1.0));
  const Spread bf16_speedup = spread_of(ratios(seconds[0], seconds[2]));
  const Spread two_threads = spread_of(ratios(seconds[0], seconds[3]));
  const double macs = static_cast<double>(model.source->config().target_parameters());

  Report& report = context.report;
  report.table("Plain decoding, one token a pass; " + model.description,
               {{"path", 16},
                {"threads", 7},
                {"tok/s", 24},
                {"GMAC/s", 8},
                {"weight GB/s", 11},
                {"vs f32, 1 thread", 18}});
  const auto row = [&](const char* name, const char* threads, const Spread& rate, double token,
                       const std::string& ratio) {
    report.row({name, threads, with_range(rate, 1), fixed(rate.median * macs * 1e-9, 2),
                fixed(rate.median * token * 1e-9, 1), ratio});
  };
  row("AR target f32", "1", f32_rate, bytes, "1.00");
  row("AR target bf16", "1", bf16_rate, token_bytes(*half.weights), with_range(bf16_speedup, 2));
  row("AR target f32", "2", spread_of(inverse(seconds[3], 1.0)), bytes, with_range(two_threads, 2));
  report.line("memory read by one core: " + with_range(bandwidth, 1) +
              " GB/s; f32 decoding reads weights at " + with_range(fraction, 2) + " of it");
  const auto figure = [&](const std::string& name, const Spread& value, const char* unit) {
    report.figure({name, value, unit, {{"shape", model.description}}});
  };
  figure("read_bandwidth_gbs", bandwidth, "GB/s");
  figure("ar_" + model.label + "_f32_tok_s", f32_rate, "tok/s");
  figure("ar_" + model.label + "_bf16_tok_s", bf16_rate, "tok/s");
  figure("ar_" + model.label + "_f32_bandwidth_fraction", fraction, "of read bandwidth");
  figure("ar_" + model.label + "_bf16_speedup", bf16_speedup, "x");
  // The document's figure is the scaled shape's; small shapes gain less and are named so.
  figure(model.label == "scaled" ? "target_threads_2_speedup"
                                 : "target_threads_2_speedup_" + model.label,
         two_threads, "x");
}

}  // namespace spel::engine::tools
