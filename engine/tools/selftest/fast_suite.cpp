// [5] the BLAS path: the same tokens, other bits.
#include <algorithm>
#include <string>
#include <vector>

#include "engine/tools/model_rig.h"
#include "engine/tools/prompts.h"
#include "engine/tools/selftest/suites.h"
#include "kernels/blas.h"

namespace spel::engine::tools {
namespace {

constexpr std::size_t kTokens = 24;
constexpr std::size_t kPass = 4;

/// Logits of one batched pass.
std::vector<float> batched_logits(const Subject& subject, const kernels::Kernels& kernels,
                                  Numerics numerics) {
  ModelOptions options;
  options.max_seq = context_of(subject, 64);
  options.numerics = numerics;
  AssembledModel rig = assemble_rig(subject.weights, kernels, 1, 1, options);
  const auto state = rig.target->make_state();
  return feed(*rig.target, *state, random_prompt(kPass, rig.target->vocab_size(), 55), kPass);
}

std::vector<TokenId> decode(const Subject& subject, const kernels::Kernels& kernels,
                            Numerics numerics, bool speculative) {
  ModelOptions options;
  options.max_seq = context_of(subject, 128);
  options.numerics = numerics;
  EngineConfig config;
  config.sequences = 1;
  config.prefix_cache_entries = 0;
  config.calibrate = false;
  EngineRig rig(subject.weights, kernels, 1, 1, options, config);
  GenerationRequest request;
  const std::size_t prompt = std::min(kTokens, options.max_seq / 2);
  request.prompt = random_prompt(prompt, subject.weights->target.spec.vocab_size, 31);
  request.max_tokens = std::min(kTokens, options.max_seq - prompt);
  request.sampling.temperature = 0.0F;
  request.ignore_eos = true;
  request.speculation.enabled = speculative;
  request.speculation.governor = GovernorKind::kOff;
  return run_request(*rig.engine, std::move(request)).tokens;
}

}  // namespace

void check_fast_path(const SuiteContext& context, Checks& checks) {
  if (!kernels::has_blas()) {
    checks.skip("numerics=fast is not in this build (SPEL_WITH_BLAS=ON)");
    return;
  }
  // Summation in another order moves a logit by a few units in its last places.
  constexpr double kTolerance = 1e-3;
  std::size_t equal = 0;
  std::size_t bits = 0;
  std::size_t values = 0;
  std::size_t argmax = 0;
  std::size_t tokens = 0;
  std::size_t rows = 0;
  for (const Subject& subject : context.subjects) {
    const auto expected = decode(subject, context.kernels, Numerics::kStrict, false);
    tokens += expected.size();
    equal += checks.same_tokens(subject.name + ", strict AR against fast speculation",
                                decode(subject, context.kernels, Numerics::kFast, true), expected);
    const auto strict = batched_logits(subject, context.kernels, Numerics::kStrict);
    const auto fast = batched_logits(subject, context.kernels, Numerics::kFast);
    checks.require(checks.max_abs(fast, strict) < kTolerance, subject.name + ": logits too far");
    bits += checks.differing(fast, strict);
    values += strict.size();
    const std::size_t vocab = subject.weights->target.spec.vocab_size;
    rows += strict.size() / vocab;
    for (std::size_t at = 0; at < strict.size(); at += vocab) {
      const bool same = greedy_choice(std::span(fast).subspan(at, vocab)) ==
                        greedy_choice(std::span(strict).subspan(at, vocab));
      argmax += same ? 0 : 1;
    }
  }
  checks.require(argmax == 0, "the most probable token differs");
  checks.note("strict AR vs fast spec " + std::to_string(equal) + "/" + std::to_string(tokens) +
              " tokens; " + std::to_string(bits) + "/" + std::to_string(values) +
              " logit bits differ; argmax differs " + std::to_string(argmax) + "/" +
              std::to_string(rows));
}

}  // namespace spel::engine::tools
