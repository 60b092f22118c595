// From wherever a model's values are to the weights a pass reads.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>

#include "engine/arch/pack.h"
#include "engine/document/model_source.h"
#include "engine/model/weights.h"

namespace spel::engine {

/// A model directory or a SPELW001 file, whichever `path` is. Throws Error: kNotFound/kIo if it
/// cannot be read, kCorrupt naming the file, the tensor or header field, what was expected and what
/// was found. Every count is checked against the file's size before anything is allocated.
[[nodiscard]] std::unique_ptr<ModelSource> open_model(const std::filesystem::path& path);

/// Packs everything a source holds.
[[nodiscard]] std::shared_ptr<const ModelWeights> build_weights(const ModelSource& source,
                                                                WeightsDtype dtype);

/// Loads a model directory or a SPELW001 file. Throws as open_model().
[[nodiscard]] std::shared_ptr<const ModelWeights> load_model(const std::filesystem::path& path,
                                                             WeightsDtype dtype);

/// Seeded random weights of a shape, bf16-exact, with the draft quantised from the copied layers:
/// for benchmarks and tests, no language in them.
[[nodiscard]] std::shared_ptr<const ModelWeights> random_model(const ModelConfig& config,
                                                               std::uint64_t seed,
                                                               WeightsDtype dtype);

}  // namespace spel::engine
