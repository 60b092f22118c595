// Models ready to run: what a tool loads, and the pools it runs them on.
#pragma once

#include <cstddef>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "engine/engine.h"
#include "engine/model/forward.h"
#include "engine/model/weights.h"
#include "engine/tokenizer.h"
#include "engine/tools/options.h"
#include "kernels/kernels.h"
#include "kernels/thread_pool.h"

namespace spel::engine::tools {

/// The model a command line means: --model, else SPEL_MODEL, else SPEL_WEIGHTS, else the shipped
/// one. nullopt if there is none.
[[nodiscard]] std::optional<std::filesystem::path> find_model(const Options& options);

/// SPEL_DRAFT_THREADS, or `fallback`. Throws Error(kInvalidArgument) outside 1 … 6.
[[nodiscard]] std::size_t draft_threads_from_environment(std::size_t fallback);

/// The kernel set SPEL_ISA names, or the best of this machine. Throws Error(kInvalidArgument)
/// for a set this machine cannot run.
[[nodiscard]] const kernels::Kernels& kernels_from_environment();

/// The model's tokenizer; for a vocabulary that is not ASCII's, one whose tokens read "<id>".
[[nodiscard]] std::shared_ptr<const Tokenizer> tokenizer_for(const ModelConfig& config);

/// Target and draft over one set of weights, each with its own pool.
struct ModelRig {
  ModelRig(std::shared_ptr<const ModelWeights> weights_in, const kernels::Kernels& kernels,
           std::size_t target_threads, std::size_t draft_threads, const ModelOptions& options);

  std::shared_ptr<const ModelWeights> weights;
  kernels::ThreadPool target_pool;
  kernels::ThreadPool draft_pool;
  std::unique_ptr<HybridCausalModel> target;
  std::unique_ptr<HybridCausalModel> draft;
};

/// An engine and what its models stand on.
struct EngineRig {
  EngineRig(std::shared_ptr<const ModelWeights> weights, const kernels::Kernels& kernels,
            std::size_t target_threads, std::size_t draft_threads, const ModelOptions& options,
            const EngineConfig& config);

  ModelRig models;  ///< The engine owns the two models; their pools and weights stay here.
  Engine engine;
};

/// Feeds `tokens` in passes of at most `size` and returns the logits of every one.
[[nodiscard]] std::vector<float> feed(CausalModel& model, SequenceState& state,
                                      std::span<const TokenId> tokens, std::size_t size,
                                      bool checkpoints = false);

/// Index of the largest logit, the lowest on a tie: what decoding at temperature 0 chooses.
[[nodiscard]] TokenId greedy_choice(std::span<const float> logits);

}  // namespace spel::engine::tools
