// Causal attention in fixed blocks of positions, for all query heads of a key-value head at once.
#pragma once

#include "kernels/generic/rows.h"

namespace spel::kernels {
namespace {

/// scratch[query][j …] = logit_scale * (q . key j) for the panel of positions at j: one chain over
/// d for each of Q queries. How many share a load changes no bit.
template <int Q>
inline void block_logits(const AttentionBlock& block, const float* q, std::size_t q_stride,
                         float (*scratch)[kAttentionBlock]) {
  const std::size_t hd = block.head_dim;
  for (std::size_t j = 0; j < block.positions; j += 16) {
    const float* panel = block.keys + j * hd;
    F16 acc[Q];
#pragma GCC unroll 4
    for (int i = 0; i < Q; ++i) {
      acc[i] = splat(0.0F);
    }
    for (std::size_t d = 0; d < hd; ++d) {
      const F16 key = load(panel + 16 * d);
#pragma GCC unroll 4
      for (int i = 0; i < Q; ++i) {
        acc[i] = fma(splat(q[static_cast<std::size_t>(i) * q_stride + d]), key, acc[i]);
      }
    }
#pragma GCC unroll 4
    for (int i = 0; i < Q; ++i) {
      store(scratch[i] + j, mul(acc[i], splat(block.logit_scale)));
    }
  }
}

/// Lanes [d, d + 16 N) of the sum over j of p_j v_j, one chain an element, for each of Q queries.
/// With N = 1 the lanes past head_dim are left alone.
template <int Q, int N>
inline void block_values(const AttentionBlock& block, const float (*p)[kAttentionBlock],
                         std::size_t d, float* parts, std::size_t part_stride) {
  const std::size_t lanes = block.head_dim - d < 16 ? block.head_dim - d : 16;
  F16 acc[Q][N];
#pragma GCC unroll 4
  for (int i = 0; i < Q; ++i) {
#pragma GCC unroll 4
    for (int n = 0; n < N; ++n) {
      acc[i][n] = splat(0.0F);
    }
  }
  for (std::size_t j = 0; j < block.positions; ++j) {
    const float* row = block.values + j * block.head_dim + d;
    F16 value[N];
#pragma GCC unroll 4
    for (int n = 0; n < N; ++n) {
      value[n] = N == 1 ? load_lanes(row, lanes) : load(row + 16 * static_cast<std::size_t>(n));
    }
#pragma GCC unroll 4
    for (int i = 0; i < Q; ++i) {
      const F16 weight = splat(p[i][j]);
#pragma GCC unroll 4
      for (int n = 0; n < N; ++n) {
        acc[i][n] = fma(weight, value[n], acc[i][n]);
      }
    }
  }
#pragma GCC unroll 4
  for (int i = 0; i < Q; ++i) {
    float* out = parts + static_cast<std::size_t>(i) * part_stride + d;
#pragma GCC unroll 4
    for (int n = 0; n < N; ++n) {
      if (N == 1) {
        store_lanes(out, lanes, acc[i][n]);
      } else {
        store(out + 16 * static_cast<std::size_t>(n), acc[i][n]);
      }
    }
  }
}

template <int Q>
inline void attend_queries(const AttentionBlock& block, const float* q, std::size_t q_stride,
                           float* parts, std::size_t part_stride) {
  constexpr int kVectors = Q == 4 ? 2 : 4;  // As many sums as the registers hold.
  const std::size_t hd = block.head_dim;
  float p[Q][kAttentionBlock];
  block_logits<Q>(block, q, q_stride, p);
  for (std::size_t i = 0; i < Q; ++i) {
    float* part = parts + i * part_stride;
    part[hd] = exp_sum(p[i], block.positions, p[i], part + hd + 1);
  }
  std::size_t d = 0;
  for (; d + 16 * kVectors <= hd; d += 16 * kVectors) {
    block_values<Q, kVectors>(block, p, d, parts, part_stride);
  }
  for (; d < hd; d += 16) {
    block_values<Q, 1>(block, p, d, parts, part_stride);
  }
}

inline void attend_block(const AttentionBlock& block, const float* q, std::size_t q_stride,
                         std::size_t queries, float* parts, std::size_t part_stride) {
  std::size_t i = 0;
  for (; i + 4 <= queries; i += 4) {
    attend_queries<4>(block, q + i * q_stride, q_stride, parts + i * part_stride, part_stride);
  }
  if (i + 2 <= queries) {
    attend_queries<2>(block, q + i * q_stride, q_stride, parts + i * part_stride, part_stride);
    i += 2;
  }
  if (i < queries) {
    attend_queries<1>(block, q + i * q_stride, q_stride, parts + i * part_stride, part_stride);
  }
}

inline void merge_attention(const float* parts, std::size_t part_stride, std::size_t blocks,
                            std::size_t head_dim, float* out) {
  float top = parts[head_dim + 1];
  for (std::size_t b = 1; b < blocks; ++b) {
    const float other = parts[b * part_stride + head_dim + 1];
    top = other > top ? other : top;
  }
  for (std::size_t d = 0; d < head_dim; d += 16) {
    store_lanes(out + d, head_dim - d < 16 ? head_dim - d : 16, splat(0.0F));
  }
  float sum = 0.0F;
  for (std::size_t b = 0; b < blocks; ++b) {
    const float* part = parts + b * part_stride;
    const F16 weight = exp_lanes(splat(part[head_dim + 1] - top));
    float weights[16];
    store(weights, weight);
    sum = fma_one(weights[0], part[head_dim], sum);
    map_row(part, head_dim, out, [&](std::size_t d, F16 values) {
      return fma(weight, values, load_at(out, d, head_dim));
    });
  }
  const F16 inverse = splat(1.0F / sum);
  map_row(out, head_dim, out, [&](std::size_t, F16 values) { return mul(values, inverse); });
}

}  // namespace
}  // namespace spel::kernels
