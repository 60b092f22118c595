// The recurrent mixer of a forward pass: Gated DeltaNet.
#pragma once

#include <cstddef>

#include "engine/model/weights.h"
#include "engine/model/workspace.h"

namespace spel::engine {

/// out = the short convolution over `in`, conv_width values a row, and the inputs before it, which
/// the states keep; `in` joins them.
void convolve(const Pass& pass, std::size_t layer, const DeltaSpec& spec, const DeltaWeights& w,
              ConstRows in, Rows out);

/// ws.h = the delta rule's output over every token, head by head, from `qkv`, whose q and k it
/// normalises, and the gates in ws.in or the weights. States go to a ring slot each with
/// checkpoints, else only the last one is kept. `past_caches`: see kernels::DeltaTokens.
void delta_rule(const Pass& pass, std::size_t layer, const DeltaSpec& spec, const DeltaWeights& w,
                Rows qkv, bool past_caches);

/// ws.h = rms_norm(ws.h) * silu(z), a head at a time, z from ws.in.
void gate_output(const Pass& pass, const DeltaSpec& spec, const DeltaWeights& w);

}  // namespace spel::engine
