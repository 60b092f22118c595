// Seeded random weights of any shape: no language in them, but sane activations.
#pragma once

#include <cstdint>
#include <memory>

#include "engine/document/model_source.h"

namespace spel::engine {

/// Every value is a fixed function of (seed, tensor name, index), the same on every machine, and
/// bf16-exact. A draft layer's latents are those of the target layer it is named after.
/// Validates `config`.
[[nodiscard]] std::unique_ptr<ModelSource> random_source(const ModelConfig& config,
                                                         std::uint64_t seed);

}  // namespace spel::engine
