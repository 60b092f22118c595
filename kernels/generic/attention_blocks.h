// Causal attention in fixed blocks of positions, for all query heads of a key-value head at once.
#pragma once

#include "kernels/generic/rows.h"

namespace spel::kernels {
namespace {

/// Values read before their sums rest in memory: these and the next, which are asked for meanwhile,
/// fit the nearest cache.
constexpr std::size_t kValueRows = 16;

/// logits[query][j …] = logit_scale * (q . key j) for P panels of positions at j: one chain over d
/// for each position and each of Q queries. How many share a load changes no bit.
template <int Q, int P>
inline void block_logits(const AttentionBlock& block, const float* q, std::size_t q_stride,
                         std::size_t j, float (*logits)[kAttentionBlock]) {
  constexpr std::size_t kAhead = kPrefetchLines / P;
  const std::size_t hd = block.head_dim;
  const float* panels = block.keys + j * hd;
  F16 acc[Q][P];
#pragma GCC unroll 4
  for (int i = 0; i < Q; ++i) {
#pragma GCC unroll 8
    for (int p = 0; p < P; ++p) {
      acc[i][p] = splat(0.0F);
    }
  }
  // What is asked for lies kAhead lines down each panel; from a panel's last lines on, in the next
  // group of panels.
  std::size_t ahead = 16 * kAhead;
  const std::size_t ends[] = {hd > kAhead ? hd - kAhead : 0, hd};
  std::size_t d = 0;
  for (const std::size_t end : ends) {
    for (; d < end; ++d) {
      F16 key[P];
#pragma GCC unroll 8
      for (int p = 0; p < P; ++p) {
        const float* line = panels + (static_cast<std::size_t>(p) * hd + d) * 16;
        key[p] = load(line);
        prefetch(line + ahead);
      }
#pragma GCC unroll 4
      for (int i = 0; i < Q; ++i) {
        const F16 query = splat(q[static_cast<std::size_t>(i) * q_stride + d]);
#pragma GCC unroll 8
        for (int p = 0; p < P; ++p) {
          acc[i][p] = fma(query, key[p], acc[i][p]);
        }
      }
    }
    ahead += (P - 1) * hd * 16;
  }
  const F16 scale = splat(block.logit_scale);
#pragma GCC unroll 4
  for (int i = 0; i < Q; ++i) {
#pragma GCC unroll 8
    for (int p = 0; p < P; ++p) {
      store(logits[i] + j + 16 * static_cast<std::size_t>(p), mul(acc[i][p], scale));
    }
  }
}

/// Lanes [d, d + 16 N) of parts += p_j v_j for the positions [begin, end), one chain an element,
/// for each of Q queries. kTail: N is 1, and the head ends within these lanes.
template <int Q, int N, bool kTail>
inline void block_values(const AttentionBlock& block, const float (*p)[kAttentionBlock],
                         std::size_t begin, std::size_t end, std::size_t d, float* parts,
                         std::size_t part_stride) {
  static_assert(N == 1 || !kTail, "a tail is one vector");
  const std::size_t hd = block.head_dim;
  const auto load_vector = [&](const float* from) {
    return kTail ? load_partial(from, hd - d) : load(from);
  };
  F16 acc[Q][N];
#pragma GCC unroll 4
  for (int i = 0; i < Q; ++i) {
    const float* part = parts + static_cast<std::size_t>(i) * part_stride + d;
#pragma GCC unroll 8
    for (int n = 0; n < N; ++n) {
      acc[i][n] = begin == 0 ? splat(0.0F) : load_vector(part + 16 * static_cast<std::size_t>(n));
    }
  }
  for (std::size_t j = begin; j < end; ++j) {
    const float* row = block.values + j * hd + d;
    F16 value[N];
#pragma GCC unroll 8
    for (int n = 0; n < N; ++n) {
      const float* vector = row + 16 * static_cast<std::size_t>(n);
      value[n] = load_vector(vector);
      prefetch(vector + kValueRows * hd);
    }
#pragma GCC unroll 4
    for (int i = 0; i < Q; ++i) {
      const F16 weight = splat(p[i][j]);
#pragma GCC unroll 8
      for (int n = 0; n < N; ++n) {
        acc[i][n] = fma(weight, value[n], acc[i][n]);
      }
    }
  }
#pragma GCC unroll 4
  for (int i = 0; i < Q; ++i) {
    float* part = parts + static_cast<std::size_t>(i) * part_stride + d;
#pragma GCC unroll 8
    for (int n = 0; n < N; ++n) {
      if (kTail) {
        store_partial(part, hd - d, acc[i][n]);
      } else {
        store(part + 16 * static_cast<std::size_t>(n), acc[i][n]);
      }
    }
  }
}

/// The parts of Q queries.
template <int Q>
inline void attend_queries(const AttentionBlock& block, const float* q, std::size_t q_stride,
                           float* parts, std::size_t part_stride) {
  constexpr int kVectors = attention_vectors(Q);
  const std::size_t hd = block.head_dim;
  float p[Q][kAttentionBlock];
  std::size_t j = 0;
  for (; j + 16 * kVectors <= block.positions; j += 16 * kVectors) {
    block_logits<Q, kVectors>(block, q, q_stride, j, p);
  }
  for (; j < block.positions; j += 16) {
    block_logits<Q, 1>(block, q, q_stride, j, p);
  }
  for (std::size_t i = 0; i < Q; ++i) {
    float* part = parts + i * part_stride;
    part[hd] = exp_sum(p[i], block.positions, p[i], part + hd + 1);
  }
  for (std::size_t begin = 0; begin < block.positions; begin += kValueRows) {
    const std::size_t left = block.positions - begin;
    const std::size_t end = begin + (left < kValueRows ? left : kValueRows);
    std::size_t d = 0;
    for (; d + 16 * kVectors <= hd; d += 16 * kVectors) {
      block_values<Q, kVectors, false>(block, p, begin, end, d, parts, part_stride);
    }
    for (; d + 16 <= hd; d += 16) {
      block_values<Q, 1, false>(block, p, begin, end, d, parts, part_stride);
    }
    if (d < hd) {
      block_values<Q, 1, true>(block, p, begin, end, d, parts, part_stride);
    }
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
