// From a path to a model that runs, with the tokenizer it was made with: what the server and every
// tool go through.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/arch/generation_config.h"
#include "engine/arch/spel_hybrid.h"
#include "engine/document/load_model.h"
#include "engine/engine.h"
#include "engine/engine_config.h"
#include "engine/model/transformer.h"
#include "engine/model/weights.h"
#include "engine/text/tokenizer.h"
#include "kernels/kernels.h"
#include "kernels/thread_pool.h"

namespace spel::engine {

/// Weights and tokenizer agree: every token is an id that the model knows.
struct LoadedModel {
  std::shared_ptr<const ModelWeights> weights;
  std::shared_ptr<const Tokenizer> tokenizer;
  std::optional<ModelConfig> config = {};         ///< Of the document's architecture.
  std::vector<TokenId> end_tokens = {};           ///< Of config.json and generation_config.json.
  GenerationDefaults defaults = {};               ///< What requests get where they say nothing.
  std::optional<std::string> chat_template = {};  ///< The directory's, in Jinja.
};

/// How a model is run: nothing here but numerics changes what it computes.
struct RunOptions {
  std::size_t target_threads = 1;
  std::size_t draft_threads = 1;
  const kernels::Kernels& kernels = kernels::Kernels::select();
  ModelOptions model{};  ///< A max_seq beyond the model's own means that.
};

/// Ready to run, target and draft on threads of their own.
struct AssembledModel : LoadedModel {
  std::unique_ptr<kernels::ThreadPool> target_pool;
  std::unique_ptr<kernels::ThreadPool> draft_pool;
  std::unique_ptr<HybridCausalModel> target;
  std::unique_ptr<HybridCausalModel> draft;  ///< Null: the weights have none.
};

/// The tokenizer that `config` names, ending answers at its eos_token_id. Throws Error(kCorrupt)
/// for one this build does not know, for a bos_token_id (no tokenizer here puts one before a text)
/// and for a vocabulary of another size than the tokenizer's, naming both sizes.
[[nodiscard]] std::shared_ptr<const Tokenizer> make_tokenizer(const ModelConfig& config);

/// open_model() for a model that text is read and written with: throws as make_tokenizer() too,
/// naming the path.
[[nodiscard]] std::unique_ptr<ModelSource> open_text_model(const std::filesystem::path& path);

/// Loads a model directory or a SPELW001 file; a directory without draft.safetensors has a target
/// alone, and one without a tokenizer is asked with token ids. Throws as load_model(),
/// load_directory(), read_generation_config() and open_text_model().
[[nodiscard]] LoadedModel load_text_model(const std::filesystem::path& path, WeightsDtype dtype);

/// Throws as make_target_model() does, and ThreadError.
[[nodiscard]] AssembledModel assemble_model(LoadedModel loaded, const RunOptions& options);
[[nodiscard]] AssembledModel assemble_model(const std::filesystem::path& path, WeightsDtype dtype,
                                            const RunOptions& options);

/// Takes target and draft out of `model`, which must outlive the engine: they stand on the rest.
[[nodiscard]] std::unique_ptr<Engine> start_engine(const EngineConfig& config,
                                                   AssembledModel& model);

}  // namespace spel::engine
