// The suites of `spel selftest`, by number and name.
#pragma once

#include <algorithm>
#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/document/load_model.h"
#include "engine/model/weights.h"
#include "engine/tools/selftest/checks.h"
#include "engine/tools/tool.h"
#include "kernels/kernels.h"

namespace spel::engine::tools {

/// A model that the suites run on.
struct Subject {
  std::string name;
  std::shared_ptr<const ModelWeights> weights;
  bool random = false;  ///< It has learned nothing.
};

/// Widths that are no multiple of a vector register, every kind of layer, a draft of four.
[[nodiscard]] ModelConfig odd_shape();

struct SuiteContext {
  const kernels::Kernels& kernels;  ///< The set under test.
  std::vector<Subject> subjects;    ///< Random weights first, then the model at hand.
  NoteBankSuite notebank = nullptr;
};

struct Suite {
  int number;
  std::string_view name;
  void (*run)(const SuiteContext&, Checks&);
};

/// Positions a suite may use on a subject: `most`, or all that the model has.
[[nodiscard]] inline std::size_t context_of(const Subject& subject, std::size_t most) {
  return std::min<std::size_t>(most, subject.weights->target.spec.max_seq);
}

/// All twelve, in order.
[[nodiscard]] std::span<const Suite> all_suites();

/// Random weights whose widths are no multiple of a vector, and the kernels chosen.
[[nodiscard]] SuiteContext make_context(const kernels::Kernels& kernels);

/// Runs one suite and prints its line. `broken` alters what it compares. True unless it failed.
[[nodiscard]] bool run_suite(const Suite& suite, const SuiteContext& context, bool broken,
                             std::ostream& out);

// The suites, by the promise they hold the engine to.
void check_ternary(const SuiteContext& context, Checks& checks);
void check_batched(const SuiteContext& context, Checks& checks);
void check_speculation(const SuiteContext& context, Checks& checks);
void check_fast_path(const SuiteContext& context, Checks& checks);
void check_forced(const SuiteContext& context, Checks& checks);
void check_round_trip(const SuiteContext& context, Checks& checks);
void check_draft_pool(const SuiteContext& context, Checks& checks);
void check_instruction_sets(const SuiteContext& context, Checks& checks);
void check_company(const SuiteContext& context, Checks& checks);
void check_sampled(const SuiteContext& context, Checks& checks);
void check_rollback(const SuiteContext& context, Checks& checks);

}  // namespace spel::engine::tools
