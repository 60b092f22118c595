#include "engine/tools/selftest/suites.h"

#include <array>
#include <iomanip>
#include <ostream>

#include "config/base/error.h"

namespace spel::engine::tools {
namespace {

constexpr int kNameWidth = 30;

void check_notebank(const SuiteContext& context, Checks& checks) {
  if (context.notebank == nullptr) {
    checks.skip("not in this build");
    return;
  }
  context.notebank(context, checks);
}

constexpr std::array<Suite, 12> kSuites = {{
    {1, "ternary pack/dot/GEMV", &check_ternary},
    {2, "batched vs sequential", &check_batched},
    {3, "speculative fidelity", &check_speculation},
    {4, "NoteBank", &check_notebank},
    {5, "fast path", &check_fast_path},
    {6, "forced acceptance", &check_forced},
    {7, "weights round-trip", &check_round_trip},
    {8, "draft pool", &check_draft_pool},
    {9, "every instruction set equal", &check_instruction_sets},
    {10, "alone equals in company", &check_company},
    {11, "sampled spec equals plain", &check_sampled},
    {12, "every sequence of k", &check_rollback},
}};

}  // namespace

ModelConfig odd_shape() {
  ModelConfig config;
  config.name = "random weights, odd shape";
  config.d_model = 60;
  config.n_layers = 10;
  config.n_heads = 3;
  config.head_dim = 20;
  config.d_ff = 84;
  config.vocab_size = 101;
  config.max_seq = 512;
  return config;
}

std::span<const Suite> all_suites() { return kSuites; }

SuiteContext make_context(const kernels::Kernels& kernels) {
  constexpr std::uint64_t kSeed = 1;
  const ModelConfig shape = odd_shape();
  return {kernels, {{shape.name, random_model(shape, kSeed, WeightsDtype::kF32), true}}};
}

bool run_suite(const Suite& suite, const SuiteContext& context, bool broken, std::ostream& out) {
  Checks checks(broken);
  try {
    suite.run(context, checks);
  } catch (const std::exception& error) {
    checks.require(false, error.what());
  }
  const std::string label = "[" + std::to_string(suite.number) + "] " + std::string(suite.name);
  const char* verdict = !checks.passed() ? "FAIL" : checks.skipped() ? "skip" : "ok";
  out << std::left << std::setw(kNameWidth + 4) << label << std::setw(6) << verdict;
  std::string_view separator;
  for (const std::string& note : checks.notes()) {
    out << separator << note;
    separator = "; ";
  }
  out << "\n";
  for (const std::string& row : checks.rows()) {
    out << "     " << row << "\n";
  }
  for (const std::string& failure : checks.failures()) {
    out << "     " << failure << "\n";
  }
  out.flush();
  return checks.passed();
}

}  // namespace spel::engine::tools
