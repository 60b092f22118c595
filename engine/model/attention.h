// The attention mixer of a forward pass.
#pragma once

#include <cstddef>

#include "engine/model/rope_table.h"
#include "engine/model/weights.h"
#include "engine/model/workspace.h"

namespace spel::engine {

/// ws.h = causal attention's output over every token, head by head, from ws.in, whose q and k it
/// normalises and rotates; keys and values join the states. `rope`: of a spec that has one.
void attend(const Pass& pass, std::size_t layer, const AttentionSpec& spec,
            const AttentionWeights& w, const RopeTable* rope);

}  // namespace spel::engine
