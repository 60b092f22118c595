// Running a model over the golden tokens.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "engine/document/load_model.h"
#include "engine/model/weights.h"
#include "kernels/kernels.h"

namespace spel::engine::tools {

/// Logits of target and draft for `tokens` from a reset state, one row a token.
[[nodiscard]] GoldenLogits run_golden(
    const std::shared_ptr<const ModelWeights>& weights, std::span<const TokenId> tokens,
    const kernels::Kernels& kernels,
    kernels::TernaryKernel ternary = kernels::TernaryKernel::kDotprod);

/// The tokens new golden logits are computed for: printable text where the vocabulary is ASCII.
[[nodiscard]] std::vector<TokenId> golden_tokens(const ModelConfig& config);

}  // namespace spel::engine::tools
