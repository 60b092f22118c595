// The shipped model gives the same ids with speculation on and off: for K in 1..8, threads 1..2,
// every instruction set of this machine, greedy and at temperature 0.8, eight sequences at a time.
// SPEL_FIDELITY_PROMPTS sets how many prompts are tried (fewer by default; the full check takes
// 200).
#include <cstdlib>
#include <gtest/gtest.h>
#include <memory>
#include <string>
#include <vector>

#include "engine/speculate/model_drafter.h"
#include "kernels/isa.h"
#include "tests/engine/support.h"

namespace spel::engine {
namespace {

using testing::HybridRig;
using testing::random_tokens;
using testing::Reader;

constexpr std::size_t kPromptsByDefault = 12;
constexpr std::size_t kScalarPromptsByDefault = 2;  // The definition, not a fast path.
constexpr std::size_t kOutputTokens = 20;

std::size_t prompt_count(kernels::Isa isa) {
  if (const char* text = std::getenv("SPEL_FIDELITY_PROMPTS")) {
    return std::strtoul(text, nullptr, 10);
  }
  return isa == kernels::Isa::kScalar ? kScalarPromptsByDefault : kPromptsByDefault;
}

std::shared_ptr<const ModelWeights> shipped_weights() {
  return load_model(std::string(SPEL_SOURCE_DIR) + "/engine/models/spel-21m", WeightsDtype::kBf16);
}

// Prose, recall and noise in turn, of many lengths.
std::vector<TokenId> prompt(std::size_t index) {
  static const std::vector<std::string> texts = {
      "It is a truth universally acknowledged, that a single man in possession of a good fortune",
      "KEY_15=1907; the house of stone and the water of the KEY_27=4410; river were old ?KEY_15=",
      "In the beginning God created the heaven and the earth. And the earth was without form",
      "hacker: n. A person who enjoys exploring the details of programmable systems and how to",
  };
  if (index % 5 == 4) {
    return random_tokens(20 + index % 50, 128, index);
  }
  const std::string& text = texts[index % texts.size()];
  const std::size_t length = 8 + index * 7 % (text.size() - 8);
  return {text.begin(), text.begin() + static_cast<std::ptrdiff_t>(length)};
}

std::vector<std::vector<TokenId>> answers(Engine& engine, std::size_t count, std::size_t k,
                                          float temperature) {
  std::vector<std::unique_ptr<Reader>> readers;
  std::vector<std::vector<TokenId>> tokens;
  for (std::size_t i = 0; i < count; ++i) {
    GenerationRequest request;
    request.prompt = prompt(i);
    request.max_tokens = kOutputTokens;
    request.sampling.temperature = temperature;
    request.sampling.seed = 1000 + i;
    request.speculation.enabled = k > 0;
    request.speculation.k = k;
    request.speculation.governor = GovernorKind::kOff;
    readers.push_back(std::make_unique<Reader>());
    EXPECT_EQ(engine.submit(std::move(request), readers.back()->stream()), SubmitStatus::kAccepted);
  }
  for (const auto& reader : readers) {
    tokens.push_back(reader->drain(engine.tokenizer()).tokens);
  }
  return tokens;
}

TEST(ShippedModel, SpeculationNeverChangesAToken) {
  const auto weights = shipped_weights();
  EngineConfig config;
  config.calibrate = false;
  config.queue_capacity = 1000;
  std::vector<std::vector<std::vector<TokenId>>> plain;
  for (const kernels::Isa isa : kernels::attainable_isas()) {
    const std::size_t count = prompt_count(isa);
    for (const std::size_t threads : {1U, 2U}) {
      ModelOptions options;
      options.max_batch_rows = config.batch_rows();
      HybridRig rig(weights, isa, threads, options);
      Engine engine(config, std::move(rig.target),
                    make_model_drafter("ternary", std::move(rig.draft)), make_ascii_tokenizer());
      const std::vector<float> temperatures = {0.0F, 0.8F};
      for (std::size_t t = 0; t < temperatures.size(); ++t) {
        if (plain.size() <= t) {
          plain.push_back(answers(engine, count, 0, temperatures[t]));
        }
        std::vector<std::vector<TokenId>> expected = plain[t];
        expected.resize(count);
        for (std::size_t k = 1; k <= 8; ++k) {
          EXPECT_EQ(answers(engine, count, k, temperatures[t]), expected)
              << isa_name(isa) << " threads " << threads << " temperature " << temperatures[t]
              << " k " << k;
        }
      }
      EXPECT_GT(engine.stats().accepted_tokens, 0U);
    }
  }
}

}  // namespace
}  // namespace spel::engine
