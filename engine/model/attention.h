// The attention mixer of a forward pass.
#pragma once

#include <cstddef>

#include "engine/model/rope_table.h"
#include "engine/model/workspace.h"

namespace spel::engine {

/// ws.h = causal attention's output over every token, head by head, from ws.qkv, whose q and k it
/// normalises and rotates; keys and values join the states.
void attend(const Pass& pass, std::size_t layer, const AttentionSpec& spec, const RopeTable& rope);

}  // namespace spel::engine
