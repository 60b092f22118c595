// The shape a command line and its environment ask for: that of random weights, or what a model
// read from files must have. From the weakest: SPEL_CONFIG ("d_model=1024,draft_map=0:3:6:9"), then
// SPEL_D_MODEL, SPEL_N_LAYERS, SPEL_N_HEADS, SPEL_HEAD_DIM, SPEL_D_FF, SPEL_VOCAB, SPEL_MAX_SEQ,
// SPEL_ATTN_PERIOD and SPEL_DRAFT_MAP ("0,3,6,9"), then --config. SPEL_MAX_SEQ is a setting of the
// server too: it asks for no shape by itself and holds no file to anything.
//
// All throw Error(kInvalidArgument) naming the key, its value, and what is allowed.
#pragma once

#include <optional>
#include <string>

#include "engine/arch/spel_hybrid.h"

namespace spel::engine::tools {

/// `flag` is the value of --config.
[[nodiscard]] bool shape_is_given(const std::optional<std::string>& flag);

/// `base` with what is given, validated.
[[nodiscard]] ModelConfig chosen_shape(ModelConfig base, const std::optional<std::string>& flag);

/// Refuses a model that has not every value given.
void require_shape(const std::optional<ModelConfig>& config,
                   const std::optional<std::string>& flag);

/// Refuses variables of the shape whose values are not allowed, each by itself.
void check_shape_variables();

}  // namespace spel::engine::tools
