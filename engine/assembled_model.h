// A model together with the tokenizer it was made with: what the server and every tool load.
#pragma once

#include <filesystem>
#include <memory>

#include "engine/arch/spel_hybrid.h"
#include "engine/document/load_model.h"
#include "engine/model/weights.h"
#include "engine/text/tokenizer.h"

namespace spel::engine {

/// Weights and tokenizer agree: every id that the model knows is a token, and the other way round.
struct AssembledModel {
  std::shared_ptr<const ModelWeights> weights;
  std::shared_ptr<const Tokenizer> tokenizer;
  ModelConfig config;
};

/// The tokenizer that `config` names, ending answers at its eos_token_id. Throws Error(kCorrupt)
/// for one this build does not know, for a bos_token_id (no tokenizer here puts one before a text)
/// and for a vocabulary of another size than the tokenizer's, naming both sizes.
[[nodiscard]] std::shared_ptr<const Tokenizer> make_tokenizer(const ModelConfig& config);

/// open_model() for a model that text is read and written with: throws as make_tokenizer() too,
/// naming the path.
[[nodiscard]] std::unique_ptr<ModelSource> open_text_model(const std::filesystem::path& path);

/// Loads a model directory or a SPELW001 file; a directory without draft.safetensors has a target
/// alone. Throws as load_model(), load_directory() and open_text_model().
[[nodiscard]] AssembledModel assemble_model(const std::filesystem::path& path, WeightsDtype dtype);

}  // namespace spel::engine
