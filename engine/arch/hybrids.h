// The published hybrids, each in a file of its own: Gated DeltaNet with attention every few layers,
// read from the directories their makers publish. Signatures as in Architecture.
#pragma once

#include <string>
#include <string_view>

#include "engine/arch/architecture.h"

namespace spel::engine {

/// Qwen3.5: the text part of a multimodal checkpoint, or text alone.
[[nodiscard]] ModelSpec qwen35_spec(std::string_view config, const std::string& source);
[[nodiscard]] TensorLayout qwen35_tensors(const ModelSpec& spec, const TensorNames& names);

/// Qwen3-Next with dense MLPs.
[[nodiscard]] ModelSpec qwen3_next_spec(std::string_view config, const std::string& source);
[[nodiscard]] TensorLayout qwen3_next_tensors(const ModelSpec& spec, const TensorNames& names);

/// OLMo-Hybrid.
[[nodiscard]] ModelSpec olmo_hybrid_spec(std::string_view config, const std::string& source);
[[nodiscard]] TensorLayout olmo_hybrid_tensors(const ModelSpec& spec, const TensorNames& names);

}  // namespace spel::engine
