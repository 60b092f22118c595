#include <algorithm>
#include <cmath>
#include <filesystem>
#include <iomanip>
#include <limits>
#include <memory>
#include <ostream>

#include "config/base/error.h"
#include "engine/assembled_model.h"
#include "engine/document/golden.h"
#include "engine/tools/command_line.h"
#include "engine/tools/model_rig.h"
#include "engine/tools/shape.h"
#include "engine/tools/tool.h"

namespace spel::engine::tools {
namespace {

constexpr double kMiB = 1024.0 * 1024.0;

constexpr const char* kUsage =
    "usage: spel verify-weights [PATH] [--config k=v,...] [--no-golden]\n"
    "  PATH         a model directory or a SPELW001 file; SPEL_MODEL or the shipped one if not\n"
    "               given\n"
    "  --config     require these shape values, e.g. d_model=1024,n_layers=16\n"
    "  --no-golden  pass a model that has no golden logits to compare with\n"
    "Passes if the target's argmax agrees on all 16 golden tokens and its largest error is below\n"
    "SPEL_VERIFY_TOL (default 1e-3).\n";

/// How far computed logits are from the golden ones.
struct Agreement {
  double max_abs = 0;
  std::size_t argmax_agrees = 0;
};

std::size_t argmax(std::span<const float> row) {
  return static_cast<std::size_t>(std::max_element(row.begin(), row.end()) - row.begin());
}

Agreement compare(const std::vector<float>& found, const std::vector<float>& golden,
                  std::size_t vocab) {
  Agreement agreement;
  for (std::size_t i = 0; i < golden.size(); ++i) {
    const double error = std::fabs(double{found[i]} - double{golden[i]});
    // A NaN compares false with everything and would slip through std::max.
    agreement.max_abs = std::isnan(error) ? std::numeric_limits<double>::infinity()
                                          : std::max(agreement.max_abs, error);
  }
  for (std::size_t at = 0; at < golden.size(); at += vocab) {
    const bool agrees =
        argmax(std::span(found).subspan(at, vocab)) == argmax(std::span(golden).subspan(at, vocab));
    agreement.argmax_agrees += agrees ? 1 : 0;
  }
  return agreement;
}

/// `config`: of the document's architecture.
void print_sizes(const ModelWeights& weights, const std::optional<ModelConfig>& config,
                 std::ostream& out) {
  const auto bytes = [&out](const char* label, std::uint64_t value) {
    out << label << value << " B = " << std::fixed << std::setprecision(2)
        << static_cast<double>(value) / kMiB << " MiB\n"
        << std::defaultfloat;
  };
  const ModelSpec& spec = weights.target.spec;
  out << "model                " << spec.name << ": d_model " << spec.d_model << ", "
      << spec.layers.size() << " layers, ";
  if (config) {
    out << config->n_heads << " heads x " << config->head_dim << ", ";
  }
  out << "d_ff " << spec.layers.front().d_ff << ", vocab " << spec.vocab_size << "\n";
  out << "target parameters    " << spec.parameters() << "\n";
  if (config) {
    out << "draft parameters     " << config->draft_parameters() << "\n";
  }
  bytes("target FP32          ", sizeof(float) * spec.parameters());
  if (config) {
    bytes("draft FP32           ", sizeof(float) * config->draft_parameters());
    bytes("draft packed         ", config->draft_packed_bytes());
  }
  bytes("weight files         ", weights.file_bytes);
  out << "sha256               " << weights.sha256 << "\n";
}

void print_agreement(const char* label, const Agreement& agreement, std::ostream& out) {
  out << label << "max_abs=" << std::setprecision(6) << agreement.max_abs
      << "  argmax=" << agreement.argmax_agrees << "/" << kGoldenTokens << "\n";
}

int verify(const Options& options, const std::filesystem::path& path, std::ostream& out) {
  const double tolerance = tolerance_from_environment();
  // f32 holds every value exactly; bf16 would change nothing but the speed.
  const LoadedModel loaded = load_text_model(path, WeightsDtype::kF32);
  const auto& weights = loaded.weights;
  require_shape(loaded.config, options.value("config"));
  print_sizes(*weights, loaded.config, out);
  if (!weights->golden) {
    const bool allowed = options.has("no-golden");
    out << "golden               none: nothing to compare with"
        << (allowed ? "\n" : " (pass --no-golden to accept that)\n")
        << (allowed ? "PASS\n" : "FAIL\n");
    return allowed ? kToolOk : kToolFailed;
  }
  const GoldenLogits& golden = *weights->golden;
  const GoldenLogits found =
      run_golden(weights, golden.tokens, kernels_from_environment(), ternary_from_environment());
  const std::size_t vocab = weights->target.spec.vocab_size;
  const Agreement target = compare(found.target_logits, golden.target_logits, vocab);
  const Agreement draft = compare(found.draft_logits, golden.draft_logits, vocab);
  print_agreement("target               ", target, out);
  print_agreement("draft                ", draft, out);
  const bool passes = target.argmax_agrees == kGoldenTokens && target.max_abs < tolerance;
  out << (passes ? "PASS" : "FAIL") << ": target argmax " << target.argmax_agrees << "/"
      << kGoldenTokens << ", max_abs " << (target.max_abs < tolerance ? "<" : ">=") << " "
      << tolerance << "\n";
  return passes ? kToolOk : kToolFailed;
}

}  // namespace

int verify_weights_main(std::span<const std::string> args, ToolStreams streams) {
  return run_subcommand(
      {"verify-weights", kUsage, {{"config"}, {"no-golden"}, 1}}, args, streams,
      [&](const Options& options) {
        const auto path = options.positional().empty()
                              ? find_model(options)
                              : std::optional<std::filesystem::path>(options.positional().front());
        if (!path) {
          throw UsageError("no shipped model is here; give the path of one");
        }
        return verify(options, *path, streams.out);
      });
}

}  // namespace spel::engine::tools
