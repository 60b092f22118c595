// The delta rule and causal attention, one head at a time.
#pragma once

#include "kernels/generic/rows.h"

namespace spel::kernels {
namespace {

/// Where the rows of a state go after a token.
enum class Keep { kNot, kStore, kStream };

/// One token's update of rows [0, rows <= 16) of the state: reads `from`; writes `next` if kCarry,
/// and `kept` as kKeep says. kVectors: dk / 16 if known, and rows is 16; else 0.
template <int kVectors, bool kCarry, Keep kKeep>
inline void delta_block(const DeltaRule& rule, float decay, float write, const float* from,
                        float* next, float* kept, const float* q, const float* k, const float* v,
                        float* out, std::size_t rows) {
  constexpr bool kWhole = kVectors > 0;
  const std::size_t dk = kWhole ? 16 * kVectors : rule.head_dim_k;
  if (kWhole) {
    rows = 16;
  }
  const auto load_row = [dk](const float* p, std::size_t j) {
    return kWhole ? load(p + j) : load_at(p, j, dk);
  };
  const auto store_row = [dk](float* p, std::size_t j, F16 lanes) {
    if (kWhole || dk - j >= 16) {
      store(p + j, lanes);
    } else {
      store_partial(p + j, dk - j, lanes);
    }
  };
  const F16 decays = splat(decay);
  F16 acc[16];
  for (std::size_t i = 0; i < 16; ++i) {
    acc[i] = splat(0.0F);
  }
  for (std::size_t i = 0; i < rows; ++i) {
    const float* s = from + i * dk;
    F16 read = splat(0.0F);
#pragma GCC unroll 8
    for (std::size_t j = 0; j < dk; j += 16) {
      F16 lanes = load_row(s, j);
      if (rule.decay_before_read) {
        lanes = mul(decays, lanes);
      }
      read = fma(lanes, load_row(k, j), read);
    }
    acc[i] = read;
  }
  float update[16];
  const F16 wanted = rows == 16 ? load(v) : load_partial(v, rows);
  store(update, mul(splat(write), sub(wanted, sum_lanes_of_16(acc))));
  for (std::size_t i = 0; i < rows; ++i) {
    const std::size_t at = i * dk;
    const F16 u = splat(update[i]);
    F16 read = splat(0.0F);
#pragma GCC unroll 8
    for (std::size_t j = 0; j < dk; j += 16) {
      const F16 state = fma(u, load_row(k, j), mul(decays, load_row(from + at, j)));
      if constexpr (kCarry) {
        store_row(next + at, j, state);
      }
      if constexpr (kKeep == Keep::kStore) {
        store_row(kept + at, j, state);
      } else if constexpr (kKeep == Keep::kStream) {
        store_streamed(kept + at + j, state);
      }
      read = fma(state, load_row(q, j), read);
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

/// All tokens over `rows` rows of the state from row `first`: the rows stay in the nearest cache.
template <int kVectors>
inline void delta_rows(const DeltaRule& rule, const DeltaTokens& tokens, std::size_t first,
                       std::size_t rows, bool stream) {
  const std::size_t offset = first * rule.head_dim_k;
  const float* from = tokens.from + offset;
  for (std::size_t t = 0; t < tokens.count; ++t) {
    const std::size_t at = t * tokens.stride;
    float* kept = tokens.to[t] == nullptr ? nullptr : tokens.to[t] + tokens.to_offset + offset;
    const auto run = [&](auto block) {
      block(rule, tokens.decay[t * tokens.gate_stride], tokens.write[t * tokens.gate_stride], from,
            tokens.work, kept, tokens.q + at, tokens.k + at, tokens.v + at + first,
            tokens.out + t * tokens.out_stride + first, rows);
    };
    const bool carry = t + 1 < tokens.count;
    if (kept == nullptr) {
      run(delta_block<kVectors, true, Keep::kNot>);
    } else if (!stream) {
      run(carry ? delta_block<kVectors, true, Keep::kStore>
                : delta_block<kVectors, false, Keep::kStore>);
    } else if constexpr (kVectors > 0) {
      run(carry ? delta_block<kVectors, true, Keep::kStream>
                : delta_block<kVectors, false, Keep::kStream>);
    }
    from = tokens.work;
  }
}

inline bool is_line_aligned(const float* p) {
  return reinterpret_cast<std::uintptr_t>(p) % 64 == 0;
}

inline void delta_rule(const DeltaRule& rule, const DeltaTokens& tokens) {
  const std::size_t dk = rule.head_dim_k;
  // Streamed stores need whole, aligned lines.
  bool stream =
      tokens.past_caches && (dk == 64 || dk == 96 || dk == 128) && rule.head_dim_v % 16 == 0;
  for (std::size_t t = 0; t < tokens.count && stream; ++t) {
    stream = tokens.to[t] == nullptr || is_line_aligned(tokens.to[t] + tokens.to_offset);
  }
  for (std::size_t i = 0; i < rule.head_dim_v; i += 16) {
    const std::size_t left = rule.head_dim_v - i;
    if (left >= 16 && dk == 64) {
      delta_rows<4>(rule, tokens, i, 16, stream);
    } else if (left >= 16 && dk == 96) {
      delta_rows<6>(rule, tokens, i, 16, stream);
    } else if (left >= 16 && dk == 128) {
      delta_rows<8>(rule, tokens, i, 16, stream);
    } else {
      delta_rows<0>(rule, tokens, i, left < 16 ? left : 16, false);
    }
  }
  if (stream) {
    end_streamed_stores();
  }
}

inline void store_key(float* keys, std::size_t position, std::size_t head_dim, const float* k) {
  float* panel = keys + position / 16 * head_dim * 16 + position % 16;
  for (std::size_t d = 0; d < head_dim; ++d) {
    panel[16 * d] = k[d];
  }
}

/// scratch[j …] = logit_scale * (q . key j) for N panels of positions, each one chain over d.
template <int N>
inline void attention_logits(const AttentionHead& head, const float* q, std::size_t j,
                             float* scratch) {
  F16 acc[N];
#pragma GCC unroll 4
  for (int n = 0; n < N; ++n) {
    acc[n] = splat(0.0F);
  }
  const std::size_t panel_size = 16 * head.head_dim;
  const float* panels = head.keys + j * head.head_dim;
  for (std::size_t d = 0; d < head.head_dim; ++d) {
    const F16 query = splat(q[d]);
#pragma GCC unroll 4
    for (int n = 0; n < N; ++n) {
      acc[n] = fma(query, load(panels + static_cast<std::size_t>(n) * panel_size + 16 * d), acc[n]);
    }
  }
#pragma GCC unroll 4
  for (int n = 0; n < N; ++n) {
    store(scratch + j + 16 * static_cast<std::size_t>(n), mul(acc[n], splat(head.logit_scale)));
  }
}

/// Lanes [d, d + 16 N) of inverse * sum_j p_j v_j: per lane four chains by j mod 4, combined as
/// (c0 + c1) + (c2 + c3). With N = 1 the lanes past head_dim are left alone.
template <int N>
inline void weighted_values(const AttentionHead& head, const float* p, std::size_t d, F16 inverse,
                            float* out) {
  const std::size_t lanes = head.head_dim - d;
  const bool partial = N == 1 && lanes < 16;
  const float* rows = head.values + d;
  F16 chain[4][N];
#pragma GCC unroll 4
  for (int c = 0; c < 4; ++c) {
#pragma GCC unroll 4
    for (int n = 0; n < N; ++n) {
      chain[c][n] = splat(0.0F);
    }
  }
  const auto step = [&](F16(&sums)[N], std::size_t j) {
    const F16 weight = splat(p[j]);
#pragma GCC unroll 4
    for (int n = 0; n < N; ++n) {
      const float* row = rows + j * head.head_dim + 16 * static_cast<std::size_t>(n);
      sums[n] = fma(weight, partial ? load_partial(row, lanes) : load(row), sums[n]);
    }
  };
  std::size_t j = 0;
  for (; j + 4 <= head.positions; j += 4) {
    step(chain[0], j);
    step(chain[1], j + 1);
    step(chain[2], j + 2);
    step(chain[3], j + 3);
  }
  if (j < head.positions) {
    step(chain[0], j);
  }
  if (j + 1 < head.positions) {
    step(chain[1], j + 1);
  }
  if (j + 2 < head.positions) {
    step(chain[2], j + 2);
  }
#pragma GCC unroll 4
  for (int n = 0; n < N; ++n) {
    const F16 sum = add(add(chain[0][n], chain[1][n]), add(chain[2][n], chain[3][n]));
    float* to = out + d + 16 * static_cast<std::size_t>(n);
    if (partial) {
      store_partial(to, lanes, mul(sum, inverse));
    } else {
      store(to, mul(sum, inverse));
    }
  }
}

inline void attend(const AttentionHead& head, const float* q, float* scratch, float* out) {
  std::size_t j = 0;
  for (; j + 64 <= head.positions; j += 64) {
    attention_logits<4>(head, q, j, scratch);
  }
  for (; j < head.positions; j += 16) {
    attention_logits<1>(head, q, j, scratch);
  }
  float top;
  const F16 inverse = splat(1.0F / exp_sum(scratch, head.positions, scratch, &top));
  std::size_t d = 0;
  for (; d + 64 <= head.head_dim; d += 64) {
    weighted_values<4>(head, scratch, d, inverse, out);
  }
  for (; d < head.head_dim; d += 16) {
    weighted_values<1>(head, scratch, d, inverse, out);
  }
}

}  // namespace
}  // namespace spel::kernels
