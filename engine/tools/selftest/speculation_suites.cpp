// [3] speculative fidelity, [6] forced acceptance, [11] sampling: speculation changes no token.
#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "engine/tools/forced_rounds.h"
#include "engine/tools/model_rig.h"
#include "engine/tools/prompts.h"
#include "engine/tools/selftest/suites.h"

namespace spel::engine::tools {
namespace {

constexpr std::size_t kPromptTokens = 24;
constexpr std::size_t kContext = 256;

ModelOptions model_options(const Subject& subject) {
  ModelOptions options;
  options.max_seq = context_of(subject, kContext);
  return options;
}

EngineConfig engine_config() {
  EngineConfig config;
  config.sequences = 2;
  config.prefix_cache_entries = 1;
  return config;
}

/// A prompt and as many tokens as a short context has room for after it.
GenerationRequest request_for(const Subject& subject, std::size_t max_tokens) {
  GenerationRequest request;
  const std::size_t context = context_of(subject, kContext);
  const std::size_t prompt = std::min(kPromptTokens, context / 2);
  request.prompt = random_prompt(prompt, subject.weights->target.spec.vocab_size, 31);
  request.max_tokens = std::min(max_tokens, context - prompt);
  request.sampling.temperature = 0.0F;
  request.ignore_eos = true;
  return request;
}

Generated run_plainly(Engine& engine, GenerationRequest request) {
  request.speculation.enabled = false;
  return run_request(engine, std::move(request));
}

struct Fidelity {
  std::size_t k;
  GovernorKind governor;
  std::size_t tokens;
  const char* label;
};
constexpr std::array<Fidelity, 6> kFidelities = {
    {{4, GovernorKind::kOff, 40, "K=4 plain"},
     {4, GovernorKind::kTrip, 32, "K=4 governed"},
     {4, GovernorKind::kAdaptive, 32, "K=4 adaptive"},
     {16, GovernorKind::kOff, 32, "K=16 plain"},
     {16, GovernorKind::kTrip, 32, "K=16 governed"},
     {16, GovernorKind::kAdaptive, 32, "K=16 adaptive"}}};

}  // namespace

void check_speculation(const SuiteContext& context, Checks& checks) {
  for (const Fidelity& fidelity : kFidelities) {
    std::size_t equal = 0;
    std::size_t total = 0;
    for (const Subject& subject : context.subjects) {
      EngineRig rig(subject.weights, context.kernels, 1, 1, model_options(subject),
                    engine_config());
      GenerationRequest request = request_for(subject, fidelity.tokens);
      const std::size_t wanted = request.max_tokens;
      const Generated plain = run_plainly(*rig.engine, request);
      request.speculation.k = fidelity.k;
      request.speculation.governor = fidelity.governor;
      const Generated speculative = run_request(*rig.engine, std::move(request));
      equal += checks.same_tokens(subject.name + ", " + fidelity.label, speculative.tokens,
                                  plain.tokens);
      total += wanted;
      checks.require(plain.tokens.size() == wanted,
                     subject.name + ": plain decoding stopped early");
    }
    checks.note(std::string(fidelity.label) + " " + std::to_string(equal) + "/" +
                std::to_string(total));
  }
}

void check_sampled(const SuiteContext& context, Checks& checks) {
  constexpr std::size_t kTokens = 24;
  constexpr std::uint64_t kSeeds = 4;
  std::size_t equal = 0;
  std::size_t total = 0;
  std::size_t accepted = 0;
  for (const Subject& subject : context.subjects) {
    EngineRig rig(subject.weights, context.kernels, 1, 1, model_options(subject), engine_config());
    for (std::uint64_t seed = 0; seed < kSeeds; ++seed) {
      GenerationRequest request = request_for(subject, kTokens);
      request.sampling.temperature = 0.8F;
      request.sampling.top_p = seed % 2 == 0 ? 1.0F : 0.9F;
      request.sampling.presence_penalty = seed == 3 ? 0.5F : 0.0F;
      request.sampling.seed = seed;
      const Generated plain = run_plainly(*rig.engine, request);
      request.speculation.k = 1 + seed * 5;
      request.speculation.governor = GovernorKind::kOff;
      const Generated speculative = run_request(*rig.engine, std::move(request));
      equal += checks.same_tokens(subject.name + ", seed " + std::to_string(seed),
                                  speculative.tokens, plain.tokens);
      total += plain.tokens.size();
      accepted += speculative.finish.stats.accepted;
    }
  }
  checks.note("T=0.8, 4 seeds, k = 1, 6, 11, 16: " + std::to_string(equal) + "/" +
              std::to_string(total) + " tokens, " + std::to_string(accepted) + " of them drafted");
}

namespace {

struct Forced {
  double alpha;
  std::size_t rounds;
  std::size_t k;

  [[nodiscard]] std::size_t accepted() const {
    return static_cast<std::size_t>(alpha * static_cast<double>(k));
  }
};
constexpr std::array<Forced, 2> kForced = {{{0.75, 10, 4}, {1.0, 8, 4}}};

/// With as many rounds, of as many proposals, as fit into a short context after its prompt.
Forced fitted(Forced forced, std::size_t context, std::size_t prompt) {
  const std::size_t room = context - prompt;
  forced.k = std::min(forced.k, room / 2 - 1);
  forced.rounds = std::min(forced.rounds, (room - forced.k - 1) / (forced.accepted() + 1));
  return forced;
}

/// The draft may lag by the one token a fully accepted round leaves it, never more.
bool aligned(ForcedRounds& rounds) {
  const std::size_t fed = rounds.tokens().size() - 1;
  const std::size_t drafted = rounds.draft_state().position();
  return rounds.target_state().position() == fed && drafted <= fed && drafted + 1 >= fed;
}

}  // namespace

void check_forced(const SuiteContext& context, Checks& checks) {
  std::array<std::string, kForced.size()> counts;
  bool all_aligned = true;
  for (const Subject& subject : context.subjects) {
    AssembledModel rig =
        assemble_rig(subject.weights, context.kernels, 1, 1, model_options(subject));
    const std::size_t positions = rig.target->max_seq();
    const auto prompt =
        random_prompt(std::min(kPromptTokens, positions / 4), rig.target->vocab_size(), 31);
    for (std::size_t i = 0; i < kForced.size(); ++i) {
      const Forced forced = fitted(kForced[i], positions, prompt.size());
      const std::string what = subject.name + ", alpha " + std::to_string(forced.alpha);
      ForcedRounds rounds(*rig.target, *rig.draft, forced.k);
      rounds.start(prompt);
      const std::size_t per_round = forced.accepted();
      bool holds = true;
      for (std::size_t round = 0; round < forced.rounds; ++round) {
        rounds.round(forced.k, per_round);
        holds = holds && aligned(rounds);
      }
      all_aligned = all_aligned && holds;
      checks.require(holds, what + ": target and draft positions are not aligned");
      const std::size_t emitted = rounds.tokens().size() - prompt.size() - 1;
      checks.require(emitted == forced.rounds * (per_round + 1), what + ": wrong emitted count");
      // What was kept must be all that the state remembers: feed the same tokens afresh.
      const auto fresh = rig.target->make_state();
      const std::vector<TokenId> fed(rounds.tokens().begin(), rounds.tokens().end() - 1);
      (void)feed(*rig.target, *fresh, fed, kPromptTokens);
      const std::vector<TokenId> next = {rounds.tokens().back()};
      checks.same_bits(what + ", state", feed(*rig.target, rounds.target_state(), next, 1),
                       feed(*rig.target, *fresh, next, 1));
      counts[i] = std::to_string(forced.rounds * per_round) + "/" +
                  std::to_string(forced.rounds * forced.k) + ", emitted " + std::to_string(emitted);
    }
  }
  checks.note("at 0.75 " + counts[0] + "; at 1.00 " + counts[1] + "; target/draft positions " +
              (all_aligned ? "aligned" : "NOT aligned"));
}

}  // namespace spel::engine::tools
