#include "engine/model/attention.h"

#include <cstring>

#include "engine/state/hybrid_state.h"

namespace spel::engine {

void attend(const Pass& pass, std::size_t layer, const AttentionSpec& spec, const RopeTable& rope) {
  Workspace& ws = pass.ws;
  const kernels::Kernels& kernels = pass.kernels;
  const std::size_t hd = spec.head_dim;
  const std::size_t width = spec.heads * hd;
  const std::size_t stride = qkv_width(spec);
  pass.pool.parallel_for(spec.heads, [&](std::size_t head) {
    float* scratch = ws.attention_of(head);
    std::size_t row = 0;
    for (const ForwardItem& item : pass.items) {
      HybridState& state = state_of(item);
      float* keys = state.keys(layer, head);
      float* values = state.values(layer, head);
      for (std::size_t t = 0; t < item.tokens.size(); ++t, ++row) {
        const std::size_t position = state.position() + t;
        float* q = &ws.qkv[row * stride + head * hd];
        float* k = q + width;
        kernels.l2_normalize(q, 1, hd, spec.l2_norm_eps);
        kernels.l2_normalize(k, 1, hd, spec.l2_norm_eps);
        kernels.rope(q, 1, hd, rope.cos(position), rope.sin(position));
        kernels.rope(k, 1, hd, rope.cos(position), rope.sin(position));
        kernels.store_key(keys, position, hd, k);
        std::memcpy(values + position * hd, k + width, hd * sizeof(float));
        const kernels::AttentionHead view{keys, values, position + 1, hd, spec.logit_scale};
        kernels.attend(view, q, scratch, &ws.h[row * width + head * hd]);
      }
    }
  });
}

}  // namespace spel::engine
