// The published hybrids give the same bits however their tokens come: at once or one by one, alone
// or in company, on one thread or two, on every instruction set, after rollbacks.
#include <cstring>
#include <gtest/gtest.h>
#include <string>
#include <vector>

#include "engine/engine.h"
#include "tests/engine/hybrids/fixture.h"
#include "tests/engine/support.h"

namespace spel::engine {
namespace {

using testing::dense_hybrids;
using testing::HybridRun;
using testing::load_hybrid;
using testing::memory_of;
using testing::random_tokens;

// Over two blocks of attention and into a third.
constexpr std::size_t kTokens = 530;

bool same_bits(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

/// Logits of every token, and the memory behind the last.
struct Outcome {
  std::vector<float> logits;
  std::vector<float> memory;

  friend bool operator==(const Outcome& a, const Outcome& b) {
    return same_bits(a.logits, b.logits) && same_bits(a.memory, b.memory);
  }
};

/// `tokens` in pieces of `piece`.
Outcome in_pieces(const HybridRun& run, const std::vector<TokenId>& tokens, std::size_t piece) {
  const auto state = run.model->make_state();
  Outcome outcome;
  for (std::size_t at = 0; at < tokens.size(); at += piece) {
    const auto begin = tokens.begin() + static_cast<std::ptrdiff_t>(at);
    const auto end =
        tokens.begin() + static_cast<std::ptrdiff_t>(std::min(tokens.size(), at + piece));
    const std::vector<float> logits = run.logits(*state, {begin, end});
    outcome.logits.insert(outcome.logits.end(), logits.begin(), logits.end());
  }
  outcome.memory = memory_of(*state, run.model->spec());
  return outcome;
}

/// `tokens` a few at a time with checkpoints, between two other sequences, each round followed by
/// wrong tokens that are taken back.
Outcome in_company(const HybridRun& run, const std::vector<TokenId>& tokens) {
  const std::size_t vocab = run.model->vocab_size();
  const auto state = run.model->make_state();
  const auto first = run.model->make_state();
  const auto last = run.model->make_state();
  const std::vector<TokenId> others = random_tokens(7, vocab, 5);
  Outcome outcome;
  for (std::size_t at = 0; at < tokens.size();) {
    const std::size_t fed = std::min<std::size_t>(1 + at % 5, tokens.size() - at);
    const std::size_t wrong = at % 4;
    std::vector<TokenId> round(tokens.begin() + static_cast<std::ptrdiff_t>(at),
                               tokens.begin() + static_cast<std::ptrdiff_t>(at + fed));
    round.insert(round.end(), others.begin(), others.begin() + static_cast<std::ptrdiff_t>(wrong));
    std::vector<float> logits(round.size() * vocab);
    std::vector<float> ignored(2 * others.size() * vocab);
    const std::vector<ForwardItem> items = {
        {first.get(), std::span(others).first(3), false, LogitRows::kAll, ignored.data()},
        {state.get(), round, true, LogitRows::kAll, logits.data()},
        {last.get(), std::span(others).first(1), false, LogitRows::kLast, ignored.data()}};
    run.model->forward(items);
    state->rollback(wrong);
    for (const auto& other : {first.get(), last.get()}) {
      if (other->position() > 200) {
        other->reset();
      }
    }
    outcome.logits.insert(outcome.logits.end(), logits.begin(),
                          logits.begin() + static_cast<std::ptrdiff_t>(fed * vocab));
    at += fed;
  }
  outcome.memory = memory_of(*state, run.model->spec());
  return outcome;
}

TEST(HybridBits, AreTheSameHoweverTheTokensCome) {
  for (const std::filesystem::path& model : dense_hybrids()) {
    SCOPED_TRACE(model.string());
    const auto weights = load_hybrid(model);
    const std::vector<TokenId> tokens = random_tokens(kTokens, weights->target.spec.vocab_size, 3);
    const Outcome whole =
        in_pieces(HybridRun(weights, kernels::attainable_isas().front()), tokens, kTokens);
    for (const kernels::Isa isa : kernels::attainable_isas()) {
      SCOPED_TRACE(kernels::isa_name(isa));
      EXPECT_TRUE(in_pieces(HybridRun(weights, isa), tokens, kTokens) == whole) << "at once";
    }
    for (const std::size_t threads : {1U, 2U}) {
      SCOPED_TRACE(threads);
      const HybridRun run(weights, kernels::attainable_isas().front(), threads);
      EXPECT_TRUE(in_pieces(run, tokens, 1) == whole) << "one by one";
      EXPECT_TRUE(in_pieces(run, tokens, 37) == whole) << "in pieces";
      EXPECT_TRUE(in_company(run, tokens) == whole) << "in company";
    }
  }
}

TEST(HybridBits, RandomProposalsChangeNoToken) {
  const kernels::Kernels& kernels = kernels::Kernels::select();
  for (const std::filesystem::path& model : dense_hybrids()) {
    SCOPED_TRACE(model.string());
    const auto weights = load_hybrid(model);
    const std::size_t vocab = weights->target.spec.vocab_size;
    kernels::ThreadPool pool(1);
    EngineConfig config;
    config.calibrate = false;
    ModelOptions options;
    options.max_seq = 512;
    options.max_batch_rows = config.batch_rows();
    Engine engine(config, make_target_model(weights, kernels, pool, options),
                  testing::random_drafter(vocab), testing::byte_tokenizer(vocab));
    GenerationRequest request;
    request.prompt = random_tokens(9, vocab, 4);
    request.max_tokens = 100;
    for (const float temperature : {0.0F, 0.9F}) {
      request.sampling.temperature = temperature;
      request.speculation.enabled = false;
      const auto plain = testing::generate(engine, request);
      request.speculation.enabled = true;
      request.speculation.governor = GovernorKind::kOff;
      const auto drafted = testing::generate(engine, request);
      EXPECT_EQ(drafted.tokens, plain.tokens);
      EXPECT_GT(drafted.finish.stats.proposed, 50U);
    }
  }
}

}  // namespace
}  // namespace spel::engine
