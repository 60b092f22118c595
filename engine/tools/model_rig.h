// Models and engines ready to run, and what is run through them.
#pragma once

#include <cstddef>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "engine/assembled_model.h"
#include "engine/document/golden.h"
#include "engine/engine.h"
#include "engine/request/request.h"
#include "engine/tools/command_line.h"
#include "engine/tools/environment.h"
#include "kernels/kernels.h"

namespace spel::engine::tools {

/// The model a command line means: --model, else SPEL_MODEL, else SPEL_WEIGHTS, else the shipped
/// one. nullopt if there is none.
[[nodiscard]] std::optional<std::filesystem::path> find_model(const Options& options);

/// The model's tokenizer; for random weights of a vocabulary that no tokenizer has, one whose
/// tokens read "<id>". Models from files have been held to theirs by assemble_model().
[[nodiscard]] std::shared_ptr<const Tokenizer> tokenizer_for(const ModelSpec& spec);

/// assemble_model() over weights at hand. The draft's ternary rows are multiplied as SPEL_KERNEL
/// says.
[[nodiscard]] AssembledModel assemble_rig(std::shared_ptr<const ModelWeights> weights,
                                          const kernels::Kernels& kernels,
                                          std::size_t target_threads, std::size_t draft_threads,
                                          const ModelOptions& options);

/// An engine and what its models stand on.
struct EngineRig {
  EngineRig(std::shared_ptr<const ModelWeights> weights, const kernels::Kernels& kernels,
            std::size_t target_threads, std::size_t draft_threads, const ModelOptions& options,
            const EngineConfig& config);

  AssembledModel model;
  std::unique_ptr<Engine> engine;
};

/// Feeds `tokens` in passes of at most `size` and returns the logits of every one.
[[nodiscard]] std::vector<float> feed(CausalModel& model, SequenceState& state,
                                      std::span<const TokenId> tokens, std::size_t size,
                                      bool checkpoints = false);

/// Index of the largest logit, the lowest on a tie: what decoding at temperature 0 chooses.
[[nodiscard]] TokenId greedy_choice(std::span<const float> logits);

struct Generated {
  std::vector<TokenId> tokens;
  FinishEvent finish;
};

using OnToken = std::function<void(const TokenEvent&)>;

/// A submitted request and its reader.
class PendingRun {
 public:
  /// Throws Error if the engine refuses the request.
  PendingRun(Engine& engine, GenerationRequest request);

  /// Everything it answers. Throws Error(kInternal) if the engine ended it with an error.
  [[nodiscard]] Generated wait(const OnToken& on_token = {});

 private:
  struct Signal;
  std::shared_ptr<Signal> signal_;  ///< Shared with the stream's callback, which may outlive this.
  std::shared_ptr<TokenStream> stream_;
};

[[nodiscard]] Generated run_request(Engine& engine, GenerationRequest request,
                                    const OnToken& on_token = {});

/// Logits of target and draft for `tokens` from a reset state, one row a token.
[[nodiscard]] GoldenLogits run_golden(
    const std::shared_ptr<const ModelWeights>& weights, std::span<const TokenId> tokens,
    const kernels::Kernels& kernels,
    kernels::TernaryKernel ternary = kernels::TernaryKernel::kDotprod);

/// The tokens new golden logits are computed for: printable text where the vocabulary is ASCII.
[[nodiscard]] std::vector<TokenId> golden_tokens(const ModelConfig& config);

}  // namespace spel::engine::tools
