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

/// Decay and write rate of every token, [rows][value_heads].
struct Gates {
  const float* decay;
  const float* write;
  std::size_t stride;  ///< 0: of every token the same.
};

Gates gates_of(const Pass& pass, const DeltaSpec& spec, const DeltaWeights& w) {
  if (!spec.input_gates) {
    return {w.decay.data(), w.write.data(), 0};
  }
  Workspace& ws = pass.ws;
  const std::size_t heads = spec.value_heads;
  const std::size_t stride = in_width(spec);
  pass.for_rows([&](std::size_t row) {
    const float* a = &ws.in[(row + 1) * stride - heads];  // b, then a, end the row.
    pass.kernels.delta_gates(a, a - heads, w.decay_rate.data(), w.step_bias.data(), heads,
                             spec.input_gates->write_scale, &ws.decay[row * heads],
                             &ws.write[row * heads]);
  });
  return {ws.decay.data(), ws.write.data(), heads};
}

}  // namespace

void convolve(const Pass& pass, std::size_t layer, const DeltaSpec& spec, const DeltaWeights& w,
              ConstRows in, Rows out) {
  const std::size_t width = spec.conv_width(pass.spec.d_model);
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
          inputs[tap] = in[first + t - back];
        } else if (back <= start + t) {
          inputs[tap] = state.conv_row(layer, start + t - back);
        } else {
          inputs[tap] = pass.ws.zeros.data();
        }
      }
      float* y = out[first + t];
      pass.kernels.short_conv(inputs.data(), w.conv.data(), taps, width, y);
      if (spec.conv_activation == ConvActivation::kSilu) {
        pass.kernels.silu(y, width, y);
      }
    }
    const std::size_t kept = std::min(tokens, state.conv_rows(layer));
    for (std::size_t t = tokens - kept; t < tokens; ++t) {
      std::memcpy(state.conv_row(layer, start + t), in[first + t], width * sizeof(float));
    }
    first += tokens;
  }
}

void delta_rule(const Pass& pass, std::size_t layer, const DeltaSpec& spec, const DeltaWeights& w,
                Rows qkv, bool past_caches) {
  Workspace& ws = pass.ws;
  const std::size_t kd = spec.key_dim;
  const std::size_t vd = spec.value_dim;
  const std::size_t out_width = spec.values_width();
  const std::size_t heads_per_key = spec.value_heads / spec.key_heads;
  const kernels::DeltaRule rule{.head_dim_k = kd,
                                .head_dim_v = vd,
                                .read_scale = 1.0F / std::sqrt(static_cast<float>(kd)),
                                .decay_before_read = spec.read_order == ReadOrder::kAfterDecay};
  const Gates gates = gates_of(pass, spec, w);
  list_states(pass, layer);
  pass.pool.parallel_for(spec.key_heads, [&](std::size_t key_head) {
    std::size_t row = 0;
    for (const ForwardItem& item : pass.items) {
      const std::size_t tokens = item.tokens.size();
      float* q = qkv[row] + key_head * kd;
      float* k = q + spec.keys_width();
      for (std::size_t t = 0; t < tokens; ++t) {
        pass.kernels.l2_normalize(q + t * qkv.stride, 1, kd, spec.l2_norm_eps);
        pass.kernels.l2_normalize(k + t * qkv.stride, 1, kd, spec.l2_norm_eps);
      }
      for (std::size_t i = 0; i < heads_per_key; ++i) {
        const std::size_t head = key_head * heads_per_key + i;
        const std::size_t offset = head * spec.head_state();
        pass.kernels.delta_rule(rule, {.count = tokens,
                                       .q = q,
                                       .k = k,
                                       .v = qkv[row] + 2 * spec.keys_width() + head * vd,
                                       .stride = qkv.stride,
                                       .decay = gates.decay + row * gates.stride + head,
                                       .write = gates.write + row * gates.stride + head,
                                       .gate_stride = gates.stride,
                                       .out = &ws.h[row * out_width + head * vd],
                                       .out_stride = out_width,
                                       .from = state_of(item).recurrent(layer, 0) + offset,
                                       .to = &ws.states[row],
                                       .to_offset = offset,
                                       .work = ws.delta_of(key_head),
                                       .past_caches = past_caches});
      }
      row += tokens;
    }
  });
}

void gate_output(const Pass& pass, const DeltaSpec& spec, const DeltaWeights& w) {
  const std::size_t vd = spec.value_dim;
  const std::size_t width = spec.values_width();
  const std::size_t stride = in_width(spec);
  pass.for_rows([&](std::size_t row) {
    float* out = &pass.ws.h[row * width];
    for (std::size_t head = 0; head < spec.value_heads; ++head) {
      pass.kernels.rms_norm(out + head * vd, w.norm.data(), vd, spec.gated_norm->eps,
                            out + head * vd);
    }
    pass.kernels.silu_mul(&pass.ws.in[row * stride + spec.qkv_width()], out, width, out);
  });
}

}  // namespace spel::engine
