#include "engine/model/delta_net.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>

#include "config/base/limits.h"
#include "engine/state/hybrid_state.h"

namespace spel::engine {
namespace {

/// Lists where each token's state of this layer goes.
void list_states(const Pass& pass, std::size_t layer) {
  std::size_t row = 0;
  for (const ForwardItem& item : pass.items) {
    HybridState& state = state_of(item);
    const std::size_t tokens = item.tokens.size();
    for (std::size_t t = 0; t < tokens; ++t, ++row) {
      if (item.checkpoints) {
        pass.ws.states[row] = state.recurrent(layer, t + 1);
      } else {
        pass.ws.states[row] = t + 1 == tokens ? state.recurrent(layer, 1) : nullptr;
      }
    }
  }
}

}  // namespace

void convolve(const Pass& pass, std::size_t layer, const DeltaSpec& spec, const DeltaWeights& w) {
  Workspace& ws = pass.ws;
  const std::size_t d = pass.spec.d_model;
  const std::size_t taps = spec.conv_taps;
  std::size_t first = 0;
  for (const ForwardItem& item : pass.items) {
    HybridState& state = state_of(item);
    const std::size_t start = state.position();
    const std::size_t tokens = item.tokens.size();
    for (std::size_t t = 0; t < tokens; ++t) {
      std::array<const float*, limits::kConvTapsMax> inputs{};
      for (std::size_t tap = 0; tap < taps; ++tap) {
        const std::size_t back = taps - 1 - tap;  // Oldest first.
        if (back <= t) {
          inputs[tap] = &ws.h[(first + t - back) * d];
        } else if (back <= start + t) {
          inputs[tap] = state.conv_row(layer, start + t - back);
        } else {
          inputs[tap] = ws.zeros.data();
        }
      }
      float* out = &ws.mixed[(first + t) * d];
      pass.kernels.short_conv(inputs.data(), w.conv.data(), taps, d, out);
      if (spec.conv_activation == ConvActivation::kSilu) {
        pass.kernels.silu(out, d, out);
      }
    }
    const std::size_t kept = std::min(tokens, state.conv_rows(layer));
    for (std::size_t t = tokens - kept; t < tokens; ++t) {
      std::memcpy(state.conv_row(layer, start + t), &ws.h[(first + t) * d], d * sizeof(float));
    }
    first += tokens;
  }
}

void delta_rule(const Pass& pass, std::size_t layer, const DeltaSpec& spec, const DeltaWeights& w,
                bool past_caches) {
  Workspace& ws = pass.ws;
  const std::size_t hd = spec.head_dim;
  const std::size_t width = spec.heads * hd;
  const std::size_t stride = qkv_width(spec);
  const float read_scale = 1.0F / std::sqrt(static_cast<float>(hd));
  list_states(pass, layer);
  pass.pool.parallel_for(spec.heads, [&](std::size_t head) {
    const kernels::DeltaRule rule{hd,
                                  hd,
                                  w.decay[head],
                                  w.write[head],
                                  read_scale,
                                  spec.read_order == ReadOrder::kAfterDecay};
    const std::size_t offset = head * hd * hd;
    std::size_t row = 0;
    for (const ForwardItem& item : pass.items) {
      float* q = &ws.qkv[row * stride + head * hd];
      float* k = q + width;
      for (std::size_t t = 0; t < item.tokens.size(); ++t) {
        pass.kernels.l2_normalize(q + t * stride, 1, hd, spec.l2_norm_eps);
        pass.kernels.l2_normalize(k + t * stride, 1, hd, spec.l2_norm_eps);
      }
      pass.kernels.delta_rule(rule, {.count = item.tokens.size(),
                                     .q = q,
                                     .k = k,
                                     .v = k + width,
                                     .stride = stride,
                                     .out = &ws.h[row * width + head * hd],
                                     .out_stride = width,
                                     .from = state_of(item).recurrent(layer, 0) + offset,
                                     .to = &ws.states[row],
                                     .to_offset = offset,
                                     .work = ws.delta_of(head),
                                     .past_caches = past_caches});
      row += item.tokens.size();
    }
  });
}

}  // namespace spel::engine
