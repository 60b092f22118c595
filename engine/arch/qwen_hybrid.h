// What Qwen3.5 and Qwen3-Next share: the layers but for how the delta rule's projections are
// stored. Internal to engine/arch.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "engine/arch/hybrid_tensors.h"

namespace spel::engine {

[[nodiscard]] ModelSpec qwen_hybrid_spec(std::string_view config, const std::string& source);

/// The delta rule's projections of a layer: q|k|v, z, b, a.
using DeltaProjections =
    std::function<std::vector<TensorRows>(const TensorNamer&, const DeltaSpec&, std::size_t)>;

/// `prefix`: of all tensors but the head, "model.".
[[nodiscard]] TensorLayout qwen_hybrid_tensors(const ModelSpec& spec, const TensorNames& names,
                                               const std::string& prefix,
                                               const DeltaProjections& projections);

}  // namespace spel::engine
