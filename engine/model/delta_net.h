// The recurrent mixer of a forward pass: Gated DeltaNet.
#pragma once

#include <cstddef>

#include "engine/model/weights.h"
#include "engine/model/workspace.h"

namespace spel::engine {

/// ws.mixed = the short convolution over ws.h and the inputs before it, which the states keep; ws.h
/// joins them.
void convolve(const Pass& pass, std::size_t layer, const DeltaSpec& spec, const DeltaWeights& w);

/// ws.h = the delta rule's output over every token, head by head, from ws.qkv, whose q and k it
/// normalises. States go to a ring slot each with checkpoints, else only the last one is kept.
/// `past_caches`: see kernels::DeltaTokens.
void delta_rule(const Pass& pass, std::size_t layer, const DeltaSpec& spec, const DeltaWeights& w,
                bool past_caches);

}  // namespace spel::engine
