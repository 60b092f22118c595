// Helpers shared by the engine's tests.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "engine/document/load_model.h"
#include "engine/engine.h"
#include "engine/model/transformer.h"
#include "engine/model/weights.h"
#include "engine/speculate/drafter.h"
#include "engine/text/tokenizer.h"
#include "kernels/kernels.h"
#include "tests/engine/scripted_model.h"

namespace spel::engine::testing {

/// Everything one request answered.
struct Answer {
  std::vector<TokenId> tokens;
  std::vector<std::int32_t> draft_positions;
  std::vector<float> logprobs;
  std::string text;
  PromptEvent prompt;
  FinishEvent finish;
};

/// A reader that waits for events, as a session would.
class Reader {
 public:
  explicit Reader(std::size_t capacity = 64);

  [[nodiscard]] std::shared_ptr<TokenStream> stream() const { return stream_; }
  /// The next event, waiting for it.
  [[nodiscard]] StreamEvent next();
  /// Everything up to the FinishEvent.
  [[nodiscard]] Answer drain(const Tokenizer& tokenizer);

 private:
  /// Shared with the stream's callback, which may come after the reader has gone.
  struct Signal {
    std::mutex mutex;
    std::condition_variable ready;
    std::uint64_t count = 0;
  };
  std::shared_ptr<Signal> signal_;
  std::shared_ptr<TokenStream> stream_;
};

/// Submits and waits.
[[nodiscard]] Answer generate(Engine& engine, GenerationRequest request);

[[nodiscard]] std::vector<TokenId> ascii(std::string_view text);

/// Says `script` after the prompt, token by token, then repeats its last token.
[[nodiscard]] NextToken recite(std::vector<TokenId> script, std::size_t prompt_size);

/// A drafter that lets `model` propose; null for none.
[[nodiscard]] std::unique_ptr<Drafter> drafting(std::unique_ptr<CausalModel> model);

/// Proposes tokens at random: what is exact with it is exact with any drafter.
[[nodiscard]] std::unique_ptr<Drafter> random_drafter(std::size_t vocab_size);

struct ReciterOptions {
  EngineConfig config;
  ScriptedModelOptions model;
  bool draft = true;
};

/// An engine that recites after prompts of `prompt_size` tokens; its draft knows the same script.
[[nodiscard]] std::unique_ptr<Engine> reciting_engine(std::string_view script,
                                                      std::size_t prompt_size,
                                                      const ReciterOptions& options = {});

/// Greedy, and every round drafts.
[[nodiscard]] GenerationRequest request(std::string_view prompt, std::size_t max_tokens);

/// A small hybrid of odd sizes: no width is a multiple of a vector register.
[[nodiscard]] ModelConfig odd_shape();

/// Target and draft of one set of weights on given kernels, with their own pools.
struct HybridRig {
  HybridRig(std::shared_ptr<const ModelWeights> model_weights, kernels::Isa isa,
            std::size_t threads, const ModelOptions& options);

  std::shared_ptr<const ModelWeights> weights;
  kernels::ThreadPool target_pool;
  kernels::ThreadPool draft_pool;
  std::unique_ptr<HybridCausalModel> target;
  std::unique_ptr<HybridCausalModel> draft;
};

/// A tokenizer of single bytes for vocabularies that are not ASCII's size.
[[nodiscard]] std::shared_ptr<const Tokenizer> byte_tokenizer(std::size_t vocab_size);

/// Seeded tokens in [0, vocab).
[[nodiscard]] std::vector<TokenId> random_tokens(std::size_t count, std::size_t vocab,
                                                 std::uint64_t seed);

}  // namespace spel::engine::testing
