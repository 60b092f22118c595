#include <algorithm>
#include <chrono>
#include <iomanip>
#include <ostream>
#include <set>
#include <sstream>

#include "config/base/error.h"
#include "engine/tools/command_line.h"
#include "engine/tools/model_rig.h"
#include "engine/tools/selftest/suites.h"
#include "engine/tools/shape.h"
#include "engine/tools/tool.h"

namespace spel::engine::tools {
namespace {

constexpr const char* kUsage =
    "usage: spel selftest [--model PATH] [--config KEY=N,...] [--only N[,N]]\n"
    "                     [--break N] [--random]\n"
    "  --model   a model to test with besides random weights; SPEL_MODEL or the shipped one if\n"
    "            not given\n"
    "  --config  random weights of this shape besides, as in d_model=1024,n_layers=16\n"
    "  --random  random weights only\n"
    "  --only    run these suites only\n"
    "  --break   alter what suite N compares, to see it fail\n"
    "Exit status 0 and PASS if every suite holds.\n";

/// A prompt and one round after it.
constexpr std::uint32_t kContextMin = 8;

int parse_suite(const std::string& what, const std::string& text) {
  return static_cast<int>(parse_between(what, text, 1, all_suites().size()));
}

std::set<int> selected_suites(const Options& options) {
  std::set<int> selected;
  if (const std::optional<std::string> only = options.value("only")) {
    std::istringstream parts(*only);
    for (std::string part; std::getline(parts, part, ',');) {
      selected.insert(parse_suite("--only", part));
    }
  }
  for (const Suite& suite : all_suites()) {
    if (!options.value("only")) {
      selected.insert(suite.number);
    }
  }
  return selected;
}

int selftest(const Options& options, NoteBankSuite notebank, std::ostream& out) {
  const std::set<int> selected = selected_suites(options);
  int broken = 0;
  if (const std::optional<std::string> number = options.value("break")) {
    broken = parse_suite("--break", *number);
  }
  const kernels::Kernels& kernels = kernels_from_environment();
  const auto begin = std::chrono::steady_clock::now();
  SuiteContext context = make_context(kernels);
  context.notebank = notebank;
  const auto model = find_model(options);
  if (model && !options.has("random")) {
    context.subjects.push_back(
        {model->filename().string(), load_text_model(*model, WeightsDtype::kBf16).weights, false});
  }
  if (const auto shape = options.value("config"); shape_is_given(shape)) {
    ModelConfig config = chosen_shape({}, shape);
    config.name = "random weights, " + shape.value_or("the shape of the environment");
    context.subjects.push_back({config.name, random_model(config, 1, WeightsDtype::kBf16), true});
  }
  for (const Subject& subject : context.subjects) {
    if (!subject.weights->draft) {
      throw Error(ErrorCode::kInvalidArgument,
                  subject.name + " has no draft, which the suites need (--random: without it)");
    }
    if (subject.weights->target.spec.max_seq < kContextMin) {
      throw Error(ErrorCode::kInvalidArgument,
                  subject.name + ": max_seq is " +
                      std::to_string(subject.weights->target.spec.max_seq) +
                      "; the suites need at least " + std::to_string(kContextMin) + " positions");
    }
  }
  out << "spel selftest on " << kernels.variant() << ":";
  for (const Subject& subject : context.subjects) {
    out << " [" << subject.name << "]";
  }
  out << "\n";
  std::size_t failures = 0;
  for (const Suite& suite : all_suites()) {
    if (selected.contains(suite.number)) {
      failures += run_suite(suite, context, suite.number == broken, out) ? 0 : 1;
    }
  }
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin;
  out << (failures == 0 ? "PASS" : "FAIL") << " (" << failures << " failures, " << std::fixed
      << std::setprecision(1) << seconds.count() << " s)\n"
      << std::defaultfloat;
  return failures == 0 ? kToolOk : kToolFailed;
}

}  // namespace

int selftest_main(std::span<const std::string> args, ToolStreams streams) {
  return run_selftest(args, streams, nullptr);
}

int run_selftest(std::span<const std::string> args, ToolStreams streams, NoteBankSuite notebank) {
  return run_subcommand(
      {"selftest", kUsage, {{"model", "config", "only", "break"}, {"random"}, 0}}, args, streams,
      [&](const Options& options) { return selftest(options, notebank, streams.out); });
}

}  // namespace spel::engine::tools
