// What both file forms require of golden logits.
#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "engine/arch/spel_hybrid.h"
#include "engine/model/weights.h"
#include "engine/types.h"

namespace spel::engine {

/// Tokens in a set of golden logits, in either file form.
inline constexpr std::size_t kGoldenTokens = 16;

/// Throws Error(kCorrupt) naming `source` unless every token is in the vocabulary.
void require_golden_tokens(std::span<const TokenId> tokens, const ModelConfig& config,
                           const std::string& source);

/// Throws Error(kInvalidArgument) unless `golden` can be written beside a model of this shape.
void require_golden_shape(const GoldenLogits& golden, const ModelConfig& config);

}  // namespace spel::engine
