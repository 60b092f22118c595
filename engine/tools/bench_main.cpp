#include <algorithm>
#include <array>
#include <ostream>
#include <set>
#include <sstream>
#include <thread>

#include "config/base/error.h"
#include "config/base/limits.h"
#include "engine/document/random_source.h"
#include "engine/tools/bench/bench_context.h"
#include "engine/tools/command_line.h"
#include "engine/tools/model_rig.h"
#include "engine/tools/shape.h"
#include "engine/tools/tool.h"

namespace spel::engine::tools {
namespace {

constexpr const char* kUsage =
    "usage: spel bench [--model PATH | --config k=v,...] [--only NAME,...] [--quick] [--json]\n"
    "                  [--prompts FILE] [--temperature T] [--runs N]\n"
    "  --model        SPEL_MODEL or the shipped model if not given, else random weights\n"
    "  --config       random weights of this shape, e.g.\n"
    "                 d_model=1024,n_layers=16,n_heads=16,head_dim=64,d_ff=3072\n"
    "  --only         kernels, sampling, verify, plain, decode, rollback, prompts, scaled\n"
    "  --prompts      acceptance and speedup on the prompts of a file: one a line, or separated\n"
    "                 by blank lines\n"
    "  --temperature  of decoding; 0 if not given\n"
    "  --runs         each figure is the median of this many; 5 if not given\n"
    "  --quick        fewer and shorter runs, and not the scaled shape\n"
    "  --json         one object a line: figure, value, unit, n, low, high, conditions\n"
    "SPEL_BENCH_K (or SPEL_SPEC_K) sets K (4), SPEL_DRAFT_THREADS the most draft threads shown,\n"
    "SPEL_ISA the instruction set. Without --config the 218M-parameter scaled shape is measured\n"
    "too (2.5 GB of memory). Ratios come from runs taken in turns; brackets show the extremes.\n";

constexpr std::array<const char*, 8> kParts = {"kernels", "sampling", "verify",  "plain",
                                               "decode",  "rollback", "prompts", "scaled"};
constexpr std::uint64_t kWeightSeed = 1;

[[noreturn]] void refuse(const std::string& message) {
  throw Error(ErrorCode::kInvalidArgument, message);
}

std::set<std::string> selected_parts(const Options& options) {
  std::set<std::string> parts;
  std::istringstream only(options.value("only").value_or(""));
  for (std::string part; std::getline(only, part, ',');) {
    if (std::find(kParts.begin(), kParts.end(), part) == kParts.end()) {
      refuse("--only: no part \"" + part +
             "\"; expected kernels, sampling, verify, plain, decode, rollback, prompts or scaled");
    }
    parts.insert(part);
  }
  if (options.value("only") && parts.empty()) {
    refuse("--only: expected the name of a part");
  }
  if (parts.empty()) {
    parts.insert(kParts.begin(), kParts.end());
    if (options.has("quick") || shape_is_given(options.value("config"))) {
      parts.erase("scaled");
    }
    if (!options.value("prompts")) {
      parts.erase("prompts");
    }
  } else if (parts.contains("prompts") && !options.value("prompts")) {
    refuse("--only prompts needs --prompts FILE");
  }
  return parts;
}

BenchOptions bench_options(const Options& options) {
  constexpr std::uint64_t kRunsMax = 1000;
  BenchOptions bench;
  bench.read_bytes = std::size_t{1} << 30;
  if (options.has("quick")) {
    bench.runs = 3;
    bench.min_seconds = 0.002;
    bench.decode_tokens = 24;
    bench.read_bytes = std::size_t{1} << 28;
  }
  if (const std::optional<std::string> runs = options.value("runs")) {
    bench.runs = parse_between("--runs", *runs, 1, kRunsMax);
  }
  bench.k = bench_k_from_environment();
  const std::size_t cores = std::max(1U, std::thread::hardware_concurrency());
  bench.draft_threads = draft_threads_from_environment(std::min<std::size_t>(2, cores));
  bench.temperature = temperature_of(options);
  bench.prompts_file = options.value("prompts");
  return bench;
}

bool same_shape(const ModelConfig& a, const ModelConfig& b) {
  return a.d_model == b.d_model && a.n_layers == b.n_layers && a.n_heads == b.n_heads &&
         a.head_dim == b.head_dim && a.d_ff == b.d_ff && a.vocab_size == b.vocab_size;
}

BenchModel describe(std::unique_ptr<ModelSource> source, const std::string& origin) {
  const ModelConfig& c = source->config();
  BenchModel model;
  model.label = same_shape(c, ModelConfig::default_shape())  ? "default"
                : same_shape(c, ModelConfig::scaled_shape()) ? "scaled"
                                                             : "custom";
  model.description = origin + ", " + std::to_string(c.d_model) + "d/" +
                      std::to_string(c.n_layers) + "L/" + std::to_string(c.d_ff) + "ff, " +
                      std::to_string(c.target_parameters()) + " parameters";
  model.source = std::move(source);
  return model;
}

BenchModel chosen_model(const Options& options) {
  const std::optional<std::string> shape = options.value("config");
  if (shape && options.value("model")) {
    refuse("--config and --model exclude each other");
  }
  const bool named = options.value("model") || model_from_environment();
  if (shape || (shape_is_given(shape) && !named)) {
    return describe(random_source(chosen_shape(ModelConfig::default_shape(), shape), kWeightSeed),
                    "random weights");
  }
  if (const auto path = find_model(options)) {
    BenchModel model = describe(open_text_model(*path), path->filename().string());
    require_shape(model.source->config(), shape);
    return model;
  }
  return describe(random_source(ModelConfig::default_shape(), kWeightSeed), "random weights");
}

/// Passes are timed, and prompts decoded, after this many tokens; then there must be room for what
/// is generated and for the largest round.
void require_room(const BenchModel& model, const std::set<std::string>& parts,
                  const BenchOptions& options) {
  constexpr std::size_t kContext = 64;
  const std::size_t needed = kContext + options.decode_tokens + limits::kSpecKMax + 1;
  const std::size_t found = model.source->config().max_seq;
  const bool timed = std::any_of(parts.begin(), parts.end(), [](const std::string& part) {
    return part == "verify" || part == "plain" || part == "decode";
  });
  if (timed && found < needed) {
    refuse("max_seq is " + std::to_string(found) + "; verify, plain and decode need at least " +
           std::to_string(needed) + " positions; --only kernels,sampling,rollback needs none");
  }
}

int bench(const Options& options, ToolStreams streams) {
  const std::set<std::string> parts = selected_parts(options);
  const BenchOptions bench_opts = bench_options(options);
  Report report(streams, options.has("json"));
  const BenchContext context{kernels_from_environment(), bench_opts, report};
  const BenchModel model = chosen_model(options);
  require_room(model, parts, bench_opts);
  report.line("spel bench on " + std::string(context.kernels.variant()) + "; " + model.description);
  using Run = void (*)(const BenchContext&, const BenchModel&);
  const std::array<std::pair<const char*, Run>, 5> runs = {{{"verify", &bench_verification},
                                                            {"plain", &bench_plain},
                                                            {"decode", &bench_decode},
                                                            {"prompts", &bench_prompts},
                                                            {"rollback", &bench_rollback}}};
  if (parts.contains("kernels")) {
    bench_kernels(context);
  }
  if (parts.contains("sampling")) {
    bench_sampling(context);
  }
  for (const auto& [name, run] : runs) {
    if (parts.contains(name)) {
      run(context, model);
    }
  }
  if (parts.contains("scaled")) {
    report.progress("making random weights of the scaled shape");
    const BenchModel scaled =
        describe(random_source(ModelConfig::scaled_shape(), kWeightSeed), "random weights");
    bench_verification(context, scaled);
    bench_plain(context, scaled);
  }
  return kToolOk;
}

}  // namespace

int bench_main(std::span<const std::string> args, ToolStreams streams) {
  return run_subcommand(
      {"bench",
       kUsage,
       {{"model", "config", "only", "prompts", "temperature", "runs"}, {"quick", "json"}, 0}},
      args, streams, [&](const Options& options) { return bench(options, streams); });
}

}  // namespace spel::engine::tools
