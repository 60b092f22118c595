// The delta rule and causal attention, one head at a time.
#pragma once

#include "kernels/generic/rows.h"

namespace spel::kernels {
namespace {

/// Rows [0, rows <= 16) of one block of the state.
inline void delta_block(const DeltaRule& rule, const float* from, float* to, const float* q,
                        const float* k, const float* v, float* out, std::size_t rows) {
  const std::size_t dk = rule.head_dim_k;
  const F16 decay = splat(rule.decay);
  F16 acc[16];
  for (std::size_t i = 0; i < 16; ++i) acc[i] = splat(0.0F);
  for (std::size_t i = 0; i < rows; ++i) {
    const float* s = from + i * dk;
    F16 read = splat(0.0F);
    for (std::size_t j = 0; j < dk; j += 16) {
      F16 lanes = load_at(s, j, dk);
      if (rule.decay_before_read) lanes = mul(decay, lanes);
      read = fma(lanes, load_at(k, j, dk), read);
    }
    acc[i] = read;
  }
  float update[16];
  const F16 wanted = rows == 16 ? load(v) : load_partial(v, rows);
  store(update, mul(splat(rule.write), sub(wanted, sum_lanes_of_16(acc))));
  for (std::size_t i = 0; i < rows; ++i) {
    const float* s = from + i * dk;
    float* t = to + i * dk;
    const F16 u = splat(update[i]);
    F16 read = splat(0.0F);
    for (std::size_t j = 0; j < dk; j += 16) {
      const F16 next = fma(u, load_at(k, j, dk), mul(decay, load_at(s, j, dk)));
      if (dk - j >= 16) {
        store(t + j, next);
      } else {
        store_partial(t + j, dk - j, next);
      }
      read = fma(next, load_at(q, j, dk), read);
    }
    acc[i] = read;
  }
  const F16 result = mul(sum_lanes_of_16(acc), splat(rule.read_scale));
  if (rows == 16) {
    store(out, result);
  } else {
    store_partial(out, rows, result);
  }
}

inline void delta_step(const DeltaRule& rule, const float* from, float* to, const float* q,
                       const float* k, const float* v, float* out) {
  for (std::size_t i = 0; i < rule.head_dim_v; i += 16) {
    const std::size_t left = rule.head_dim_v - i;
    const std::size_t at = i * rule.head_dim_k;
    delta_block(rule, from + at, to + at, q, k, v + i, out + i, left < 16 ? left : 16);
  }
}

inline void store_key(float* keys, std::size_t position, std::size_t head_dim, const float* k) {
  float* panel = keys + position / 16 * head_dim * 16 + position % 16;
  for (std::size_t d = 0; d < head_dim; ++d) panel[16 * d] = k[d];
}

/// scratch[j] = logit_scale * (q . key j), each one chain over d.
inline void attention_logits(const AttentionHead& head, const float* q, float* scratch) {
  const F16 scale = splat(head.logit_scale);
  for (std::size_t j = 0; j < head.positions; j += 16) {
    const float* panel = head.keys + j * head.head_dim;
    F16 acc = splat(0.0F);
    for (std::size_t d = 0; d < head.head_dim; ++d) {
      acc = fma(splat(q[d]), load(panel + 16 * d), acc);
    }
    store(scratch + j, mul(acc, scale));
  }
}

/// Lanes [d, d+16) of sum_j p_j v_j: four chains by j mod 4, combined (c0 + c1) + (c2 + c3).
inline F16 weighted_values(const AttentionHead& head, const float* p, std::size_t d) {
  F16 chain[4];
  for (std::size_t c = 0; c < 4; ++c) chain[c] = splat(0.0F);
  for (std::size_t j = 0; j < head.positions; ++j) {
    const float* row = head.values + j * head.head_dim;
    chain[j % 4] = fma(splat(p[j]), load_at(row, d, head.head_dim), chain[j % 4]);
  }
  return add(add(chain[0], chain[1]), add(chain[2], chain[3]));
}

inline void attend(const AttentionHead& head, const float* q, float* scratch, float* out) {
  attention_logits(head, q, scratch);
  float top;
  const F16 inverse = splat(1.0F / exp_sum(scratch, head.positions, scratch, &top));
  for (std::size_t d = 0; d < head.head_dim; d += 16) {
    const F16 result = mul(weighted_values(head, scratch, d), inverse);
    if (head.head_dim - d >= 16) {
      store(out + d, result);
    } else {
      store_partial(out + d, head.head_dim - d, result);
    }
  }
}

}  // namespace
}  // namespace spel::kernels
