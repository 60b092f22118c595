// [2] batched, [8] draft pool, [10] company, [12] rollback: the bits of a pass and of the state it
// leaves.
#include <algorithm>
#include <cstdint>
#include <functional>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "config/base/limits.h"
#include "engine/tools/model_rig.h"
#include "engine/tools/prompts.h"
#include "engine/tools/selftest/suites.h"

namespace spel::engine::tools {
namespace {

constexpr std::size_t kContext = 256;

ModelOptions short_context(const Subject& subject) {
  ModelOptions options;
  options.max_seq = context_of(subject, kContext);
  return options;
}

/// Tokens fed after those under test.
constexpr std::size_t kContinued = 3;

std::string summary(const Checks& checks, const std::string& what) {
  return std::to_string(checks.compared()) + " " + what + ", " + std::to_string(checks.differed()) +
         " differ";
}

/// Tokens after the state under test: their logits differ if any bit that matters does.
std::vector<float> continuation(CausalModel& model, SequenceState& state) {
  return feed(model, state, random_prompt(kContinued, model.vocab_size(), 77), 1);
}

/// A model, tokens to feed it in some other way, and what feeding them one by one gave.
struct Fed {
  CausalModel& model;
  SequenceState& state;
  std::span<const TokenId> tokens;
  std::vector<float> logits;
  std::vector<float> after;  ///< Of the continuation.
};

/// `check(name, fed)` for target and draft of every subject.
void for_each_model(const SuiteContext& context, std::size_t count, std::uint64_t seed,
                    const std::function<void(const std::string&, const Fed&)>& check) {
  for (const Subject& subject : context.subjects) {
    AssembledModel rig =
        assemble_rig(subject.weights, context.kernels, 1, 1, short_context(subject));
    for (CausalModel* model : {static_cast<CausalModel*>(rig.target.get()),
                               static_cast<CausalModel*>(rig.draft.get())}) {
      const auto tokens =
          random_prompt(std::min(count, model->max_seq() - kContinued), model->vocab_size(), seed);
      const auto state = model->make_state();
      Fed fed{*model, *state, tokens, feed(*model, *state, tokens, 1), {}};
      fed.after = continuation(*model, *state);
      check(subject.name, fed);
    }
  }
}

}  // namespace

void check_batched(const SuiteContext& context, Checks& checks) {
  constexpr std::size_t kTokens = 34;
  for_each_model(context, kTokens, 3, [&](const std::string& name, const Fed& fed) {
    for (const std::size_t m : {2U, 5U, 9U, 17U}) {
      fed.state.reset();
      const std::string what = name + ", " + std::to_string(m) + " at once";
      checks.same_bits(what, feed(fed.model, fed.state, fed.tokens, m, true), fed.logits);
      checks.same_bits(what + ", continued", continuation(fed.model, fed.state), fed.after);
    }
  });
  checks.note(summary(checks, "logits at M = 2, 5, 9, 17 against one by one"));
}

void check_draft_pool(const SuiteContext& context, Checks& checks) {
  constexpr std::size_t kTokens = 16;
  std::size_t vocab = 0;
  for (const Subject& subject : context.subjects) {
    std::vector<std::vector<float>> logits;
    for (const std::size_t threads : {1U, 4U}) {
      AssembledModel rig =
          assemble_rig(subject.weights, context.kernels, 1, threads, short_context(subject));
      vocab = rig.draft->vocab_size();
      const auto state = rig.draft->make_state();
      const auto tokens = random_prompt(std::min(kTokens, rig.draft->max_seq()), vocab, 8);
      logits.push_back(feed(*rig.draft, *state, tokens, 1));
    }
    checks.same_bits(subject.name + ", draft threads 4 against 1", logits[1], logits[0]);
  }
  checks.note(std::to_string(kTokens) + " x " + std::to_string(vocab) +
              " logits, threads 1 vs 4, " + std::to_string(checks.differed()) + " differ");
}

void check_company(const SuiteContext& context, Checks& checks) {
  constexpr std::size_t kCompany = 8;
  for (const Subject& subject : context.subjects) {
    AssembledModel rig =
        assemble_rig(subject.weights, context.kernels, 1, 1, short_context(subject));
    CausalModel& model = *rig.target;
    const std::size_t vocab = model.vocab_size();
    std::vector<std::vector<TokenId>> prompts;
    std::vector<std::unique_ptr<SequenceState>> states;
    std::vector<std::vector<float>> together;
    for (std::size_t i = 0; i < kCompany; ++i) {
      prompts.push_back(random_prompt(std::min(5 + 3 * i, model.max_seq()), vocab, 200 + i));
      states.push_back(model.make_state());
      together.emplace_back(prompts[i].size() * vocab);
    }
    // Uneven chunks, with and without checkpoints, all sequences in one pass.
    std::vector<std::size_t> at(kCompany, 0);
    std::vector<ForwardItem> items;
    do {
      items.clear();
      for (std::size_t i = 0; i < kCompany; ++i) {
        const std::size_t count = std::min(prompts[i].size() - at[i], 1 + i);
        if (count > 0) {
          items.push_back({states[i].get(), std::span(prompts[i]).subspan(at[i], count), i % 2 == 0,
                           LogitRows::kAll, &together[i][at[i] * vocab]});
          at[i] += count;
        }
      }
      if (!items.empty()) {
        model.forward(items);
      }
    } while (!items.empty());
    for (std::size_t i = 0; i < kCompany; ++i) {
      const auto state = model.make_state();
      checks.same_bits(subject.name + ", sequence " + std::to_string(i), together[i],
                       feed(model, *state, prompts[i], 1));
    }
  }
  checks.note("8 sequences: " + summary(checks, "logits"));
}

namespace {

/// Runs rounds of `ks` proposals, keeping a random share of each, and returns the logits of the
/// kept tokens; what is rejected is noise.
std::vector<float> roll(CausalModel& model, SequenceState& state, std::span<const TokenId> tokens,
                        std::mt19937_64& random) {
  const std::size_t vocab = model.vocab_size();
  std::vector<float> kept;
  std::vector<float> logits((limits::kSpecKMax + 1) * vocab);
  std::size_t at = 0;
  while (at < tokens.size()) {
    const std::size_t room = model.max_seq() - at;
    const std::size_t k = std::min<std::size_t>(random() % (limits::kSpecKMax + 1), room - 1);
    const std::size_t keep = std::min(1 + random() % (k + 1), tokens.size() - at);
    std::vector<TokenId> round = random_prompt(k + 1, vocab, random());
    std::copy_n(tokens.begin() + static_cast<std::ptrdiff_t>(at), keep, round.begin());
    const ForwardItem item{&state, round, true, LogitRows::kAll, logits.data()};
    model.forward({&item, 1});
    state.rollback(k + 1 - keep);
    kept.insert(kept.end(), logits.begin(),
                logits.begin() + static_cast<std::ptrdiff_t>(keep * vocab));
    at += keep;
  }
  return kept;
}

}  // namespace

void check_rollback(const SuiteContext& context, Checks& checks) {
  constexpr std::size_t kTokens = 96;
  constexpr std::size_t kSequences = 4;
  for_each_model(context, kTokens, 12, [&](const std::string& name, const Fed& fed) {
    for (std::size_t i = 0; i < kSequences; ++i) {
      std::mt19937_64 random(i);
      fed.state.reset();
      const std::string what = name + ", sequence " + std::to_string(i);
      checks.same_bits(what, roll(fed.model, fed.state, fed.tokens, random), fed.logits);
      checks.require(fed.state.position() == fed.tokens.size(), what + ": the position is off");
      checks.same_bits(what + ", continued", continuation(fed.model, fed.state), fed.after);
    }
  });
  checks.note("k drawn from 0 to 16: " + summary(checks, "logits"));
}

}  // namespace spel::engine::tools
