// Speculation changes speed, never the output: greedy and sampled, whatever k, the governor, the
// company, the threads or the instruction set.
#include <gtest/gtest.h>
#include <memory>
#include <string>
#include <vector>

#include "kernels/isa.h"
#include "tests/engine/support.h"

namespace spel::engine {
namespace {

using testing::Answer;
using testing::generate;
using testing::HybridRig;
using testing::random_tokens;
using testing::Reader;

struct EngineOnHybrid {
  EngineOnHybrid(kernels::Isa isa, std::size_t threads, EngineConfig config = EngineConfig())
      : rig(weights(), isa, threads, model_options(config)),
        vocab(rig.target->vocab_size()),
        engine(quick(config), std::move(rig.target), testing::drafting(std::move(rig.draft)),
               testing::byte_tokenizer(vocab)) {}

  static std::shared_ptr<const ModelWeights> weights() {
    static const auto weights = random_model(testing::odd_shape(), 21, WeightsDtype::kBf16);
    return weights;
  }
  static ModelOptions model_options(const EngineConfig& config) {
    ModelOptions options;
    options.max_batch_rows = config.batch_rows();
    return options;
  }
  static EngineConfig quick(EngineConfig config) {
    config.calibrate = false;
    return config;
  }

  HybridRig rig;
  std::size_t vocab;
  Engine engine;
};

GenerationRequest random_request(std::uint64_t seed, std::size_t vocab) {
  GenerationRequest request;
  request.prompt = random_tokens(1 + seed * 7 % 60, vocab, seed);
  request.max_tokens = 24;
  request.sampling.temperature = seed % 3 == 0 ? 0.0F : 0.8F;
  request.sampling.seed = seed;
  if (seed % 4 == 1) {
    request.sampling.top_k = 20;
    request.sampling.presence_penalty = 0.5F;
  }
  if (seed % 4 == 2) {
    request.sampling.top_p = 0.9F;
    request.sampling.repetition_penalty = 1.2F;
  }
  if (seed % 5 == 0) {
    request.stop = {std::string(1, static_cast<char>(seed % vocab))};
  }
  if (seed % 6 == 3) {
    // Every second token ends the text, and not before the minimum.
    for (std::size_t id = 0; id < vocab; id += 2) {
      request.stop_token_ids.push_back(static_cast<TokenId>(id));
    }
    request.min_tokens = seed % 20;
  }
  if (seed % 6 == 5) {
    request.sampling.logit_bias = {{static_cast<TokenId>(seed % vocab), 3.0F}};
    request.min_tokens = 5;
  }
  if (seed % 7 == 4) {
    // Begun in the prompt, or by any of the first tokens; cut off inside rounds.
    ThinkingBudget budget{.tokens_max = seed % 11, .begin = {}, .end = 3, .close = {9, 3, 9, 5}};
    if (seed % 2 == 0) {
      budget.begin = static_cast<TokenId>(seed % vocab);
      request.sampling.logit_bias.emplace_back(*budget.begin, 3.0F);
    }
    request.sampling.thinking = budget;
  }
  request.logprobs = 2;
  return request;
}

void expect_same_output(const Answer& a, const Answer& b, const std::string& what) {
  EXPECT_EQ(a.tokens, b.tokens) << what;
  EXPECT_EQ(a.logprobs, b.logprobs) << what;
  EXPECT_EQ(a.text, b.text) << what;
  EXPECT_EQ(a.finish.reason, b.finish.reason) << what;
  EXPECT_EQ(a.finish.stats.completion_tokens, b.finish.stats.completion_tokens) << what;
}

std::vector<Answer> plain_answers(std::size_t count) {
  EngineOnHybrid plain(kernels::attainable_isas().front(), 1);
  std::vector<Answer> answers;
  for (std::size_t seed = 0; seed < count; ++seed) {
    GenerationRequest request = random_request(seed, plain.vocab);
    request.speculation.enabled = false;
    answers.push_back(generate(plain.engine, std::move(request)));
  }
  return answers;
}

// ml-explore/mlx-lm#1470, ml-explore/mlx-lm#1423 and, for what is promised, vllm-project/vllm#7627
TEST(Speculation, OnEqualsOffForEveryKGovernorAndSeed) {
  constexpr std::size_t kRequests = 60;
  const std::vector<Answer> plain = plain_answers(kRequests);
  EngineOnHybrid on(kernels::attainable_isas().front(), 2);
  for (std::size_t seed = 0; seed < kRequests; ++seed) {
    for (std::size_t k = 1; k <= 16; k += k < 8 ? 1 : 4) {
      GenerationRequest request = random_request(seed, on.vocab);
      request.speculation.k = k;
      request.speculation.governor = static_cast<GovernorKind>((seed + k) % 3);
      expect_same_output(generate(on.engine, std::move(request)), plain[seed],
                         "seed " + std::to_string(seed) + " k " + std::to_string(k));
    }
  }
  EXPECT_GT(on.engine.stats().accepted_tokens, 0U);
}

TEST(Speculation, OnEqualsOffOnEveryInstructionSetAndThreadCount) {
  constexpr std::size_t kRequests = 20;
  const std::vector<Answer> plain = plain_answers(kRequests);
  for (const kernels::Isa isa : kernels::attainable_isas()) {
    for (const std::size_t threads : {1U, 2U}) {
      EngineOnHybrid on(isa, threads);
      for (std::size_t seed = 0; seed < kRequests; ++seed) {
        GenerationRequest request = random_request(seed, on.vocab);
        request.speculation.k = 1 + seed % 8;
        request.speculation.governor = GovernorKind::kOff;
        expect_same_output(generate(on.engine, std::move(request)), plain[seed],
                           std::string(isa_name(isa)) + " seed " + std::to_string(seed));
      }
    }
  }
}

TEST(Speculation, InCompanyEqualsAlone) {
  constexpr std::size_t kRequests = 48;
  const std::vector<Answer> plain = plain_answers(kRequests);
  EngineConfig config;
  config.sequences = 8;
  config.prefill_chunk = 16;
  EngineOnHybrid on(kernels::attainable_isas().front(), 2, config);
  std::vector<std::unique_ptr<Reader>> readers;
  for (std::size_t seed = 0; seed < kRequests; ++seed) {
    GenerationRequest request = random_request(seed, on.vocab);
    request.speculation.k = seed % 9;
    request.speculation.enabled = seed % 9 != 0;
    request.speculation.governor = static_cast<GovernorKind>(seed % 3);
    readers.push_back(std::make_unique<Reader>(17 + seed % 8));
    ASSERT_EQ(on.engine.submit(std::move(request), readers.back()->stream()),
              SubmitStatus::kAccepted);
  }
  for (std::size_t seed = 0; seed < kRequests; ++seed) {
    expect_same_output(readers[seed]->drain(on.engine.tokenizer()), plain[seed],
                       "seed " + std::to_string(seed));
  }
}

TEST(Speculation, AReusedPrefixGivesTheSameBits) {
  EngineOnHybrid on(kernels::attainable_isas().front(), 1);
  EngineConfig no_cache;
  no_cache.prefix_cache_entries = 0;
  EngineOnHybrid off(kernels::attainable_isas().front(), 1, no_cache);
  GenerationRequest request;
  request.prompt = random_tokens(64, on.vocab, 1);
  request.max_tokens = 20;
  request.sampling.temperature = 0.7F;
  request.logprobs = 1;
  for (int turn = 0; turn < 4; ++turn) {
    const Answer fresh = generate(off.engine, request);
    const Answer reused = generate(on.engine, request);
    expect_same_output(reused, fresh, "turn " + std::to_string(turn));
    EXPECT_EQ(fresh.finish.stats.cached_tokens, 0U);
    if (turn > 0) {
      EXPECT_GT(reused.finish.stats.cached_tokens, 60U);
    }
    const Answer repeated = generate(on.engine, request);
    expect_same_output(repeated, fresh, "again, turn " + std::to_string(turn));
    EXPECT_EQ(repeated.finish.stats.cached_tokens, request.prompt.size());
    std::vector<TokenId> longer(request.prompt.begin(), request.prompt.end());
    longer.insert(longer.end(), fresh.tokens.begin(), fresh.tokens.end());
    const auto more = random_tokens(6, on.vocab, 50 + static_cast<std::uint64_t>(turn));
    longer.insert(longer.end(), more.begin(), more.end());
    request.prompt = std::move(longer);
  }
}

}  // namespace
}  // namespace spel::engine
