// Models ready to run: what a tool loads, and the pools it runs them on.
#pragma once

#include <cstddef>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "engine/assembled_model.h"
#include "engine/document/load_model.h"
#include "engine/engine.h"
#include "engine/model/transformer.h"
#include "engine/model/weights.h"
#include "engine/text/tokenizer.h"
#include "engine/tools/command_line.h"
#include "engine/tools/environment.h"
#include "kernels/kernels.h"
#include "kernels/thread_pool.h"

namespace spel::engine::tools {

/// The model a command line means: --model, else SPEL_MODEL, else SPEL_WEIGHTS, else the shipped
/// one. nullopt if there is none.
[[nodiscard]] std::optional<std::filesystem::path> find_model(const Options& options);

/// The model's tokenizer; for random weights of a vocabulary that no tokenizer has, one whose
/// tokens read "<id>". Models from files have been held to theirs by assemble_model().
[[nodiscard]] std::shared_ptr<const Tokenizer> tokenizer_for(const ModelSpec& spec);

/// Target and draft over one set of weights, each with its own pool. The draft's ternary rows are
/// multiplied as SPEL_KERNEL says.
struct ModelRig {
  ModelRig(std::shared_ptr<const ModelWeights> weights_in, const kernels::Kernels& kernels,
           std::size_t target_threads, std::size_t draft_threads, const ModelOptions& options);

  std::shared_ptr<const ModelWeights> weights;
  kernels::ThreadPool target_pool;
  kernels::ThreadPool draft_pool;
  std::unique_ptr<HybridCausalModel> target;
  std::unique_ptr<HybridCausalModel> draft;  ///< Null if the model has none.
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
