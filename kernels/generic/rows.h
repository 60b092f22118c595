// Operations on one row at a time. A tail of fewer than 16 elements is loaded as if followed by +0.
#pragma once

#include "kernels/generic/math.h"

namespace spel::kernels {
namespace {

/// Calls op(load, store) for every 16 elements: y[i] = op(index of the first element, lanes of x).
template <class Op>
inline void map_row(const float* x, std::size_t n, float* y, Op op) {
  std::size_t i = 0;
  for (; i + 16 <= n; i += 16) {
    store(y + i, op(i, load(x + i)));
  }
  if (i < n) {
    store_partial(y + i, n - i, op(i, load_partial(x + i, n - i)));
  }
}

/// Loads the lanes of a second operand that go with x[i … min(i+16, n)).
inline F16 load_at(const float* p, std::size_t i, std::size_t n) {
  return load_lanes(p + i, n - i < 16 ? n - i : 16);
}

/// Lane l sums elements l, l+16, … in order by fused multiply-adds; then the fixed tree.
inline float dot_row(const float* x, const float* y, std::size_t n) {
  F16 acc = splat(0.0F);
  for (std::size_t i = 0; i < n; i += 16) {
    acc = fma(load_at(x, i, n), load_at(y, i, n), acc);
  }
  return sum_lanes(acc);
}

inline void rms_norm(const float* x, const float* w, std::size_t n, float eps, float* y) {
  const float mean = dot_row(x, x, n) / static_cast<float>(n);
  const F16 inverse = splat(1.0F / square_root(mean + eps));
  map_row(x, n, y, [&](std::size_t i, F16 v) { return mul(mul(v, inverse), load_at(w, i, n)); });
}

inline void l2_normalize(float* x, std::size_t heads, std::size_t head_dim, float eps) {
  for (std::size_t h = 0; h < heads; ++h, x += head_dim) {
    const F16 inverse = splat(1.0F / square_root(dot_row(x, x, head_dim) + eps));
    map_row(x, head_dim, x, [&](std::size_t, F16 v) { return mul(v, inverse); });
  }
}

inline void rope(float* x, std::size_t heads, std::size_t head_dim, const float* cos,
                 const float* sin) {
  for (std::size_t h = 0; h < heads; ++h, x += head_dim) {
    std::size_t i = 0;
    for (; i + 16 <= head_dim; i += 16) {
      const F16 v = load(x + i);
      const F16 turned = negate_even(mul(swap_pairs(v), load_doubled(sin + i / 2)));
      store(x + i, fma(v, load_doubled(cos + i / 2), turned));
    }
    for (; i + 2 <= head_dim; i += 2) {
      const float c = cos[i / 2];
      const float s = sin[i / 2];
      const float x0 = x[i];
      const float x1 = x[i + 1];
      x[i] = fma_one(x0, c, -(x1 * s));
      x[i + 1] = fma_one(x1, c, x0 * s);
    }
  }
}

inline void rope_halves(float* x, std::size_t heads, std::size_t head_stride,
                        std::size_t rotary_dim, const float* cos, const float* sin) {
  const std::size_t half = rotary_dim / 2;
  for (std::size_t h = 0; h < heads; ++h, x += head_stride) {
    for (std::size_t i = 0; i < half; i += 16) {
      const std::size_t lanes = half - i < 16 ? half - i : 16;
      const F16 x0 = load_lanes(x + i, lanes);
      const F16 x1 = load_lanes(x + half + i, lanes);
      const F16 c = load_lanes(cos + i, lanes);
      const F16 s = load_lanes(sin + i, lanes);
      // Minus the product, by its factor: 0 minus it would give +0 for -0.
      const F16 minus_s = mul(splat(-1.0F), s);
      store_lanes(x + i, lanes, fma(x0, c, mul(x1, minus_s)));
      store_lanes(x + half + i, lanes, fma(x1, c, mul(x0, s)));
    }
  }
}

inline void short_conv(const float* const* rows, const float* w, std::size_t taps, std::size_t n,
                       float* y) {
  for (std::size_t i = 0; i < n; i += 16) {
    F16 acc = splat(0.0F);
    for (std::size_t t = 0; t < taps; ++t) {
      acc = fma(load_at(rows[t], i, n), load_at(w + t * n, i, n), acc);
    }
    store_lanes(y + i, n - i < 16 ? n - i : 16, acc);
  }
}

inline void silu(const float* x, std::size_t n, float* y) {
  map_row(x, n, y, [](std::size_t, F16 v) { return silu_lanes(v); });
}
inline void silu_mul(const float* gate, const float* up, std::size_t n, float* y) {
  map_row(gate, n, y, [&](std::size_t i, F16 v) { return mul(silu_lanes(v), load_at(up, i, n)); });
}
inline void add_rows(float* x, const float* y, std::size_t n) {
  map_row(x, n, x, [&](std::size_t i, F16 v) { return add(v, load_at(y, i, n)); });
}
inline void sigmoid(const float* x, std::size_t n, float* y) {
  map_row(x, n, y, [](std::size_t, F16 v) { return sigmoid_lanes(v); });
}

inline void sigmoid_mul(const float* gate, const float* x, std::size_t n, float* y) {
  map_row(gate, n, y,
          [&](std::size_t i, F16 v) { return mul(sigmoid_lanes(v), load_at(x, i, n)); });
}

inline void delta_gates(const float* a, const float* b, const float* rate, const float* step_bias,
                        std::size_t heads, float write_scale, float* decay, float* write) {
  map_row(a, heads, decay, [&](std::size_t i, F16 v) {
    const F16 step = softplus_lanes(add(v, load_at(step_bias, i, heads)));
    return exp_lanes(sub(splat(0.0F), mul(load_at(rate, i, heads), step)));
  });
  map_row(b, heads, write,
          [&](std::size_t, F16 v) { return mul(splat(write_scale), sigmoid_lanes(v)); });
}

/// The largest element, NaN ignored; -inf for none.
inline float max_of_row(const float* x, std::size_t n) {
  const float lowest = -__builtin_inff();
  F16 largest = splat(lowest);
  std::size_t i = 0;
  for (; i + 16 <= n; i += 16) {
    largest = max(load(x + i), largest);
  }
  float best = max_lanes(largest);
  for (; i < n; ++i) {
    best = x[i] > best ? x[i] : best;
  }
  return best;
}

inline float exp_sum(const float* x, std::size_t n, float* p, float* max_out) {
  const float top = max_of_row(x, n);
  *max_out = top;
  const F16 shift = splat(top);
  F16 sum = splat(0.0F);
  std::size_t i = 0;
  for (; i + 16 <= n; i += 16) {
    const F16 e = exp_lanes(sub(load(x + i), shift));
    store(p + i, e);
    sum = add(sum, e);
  }
  if (i < n) {
    store_partial(p + i, n - i, exp_lanes(sub(load_partial(x + i, n - i), shift)));
    sum = add(sum, load_partial(p + i, n - i));
  }
  return sum_lanes(sum);
}

inline std::size_t argmax(const float* x, std::size_t n) {
  const float best = max_of_row(x, n);
  for (std::size_t i = 0; i < n; ++i) {
    if (x[i] == best) {
      return i;
    }
  }
  return 0;
}

}  // namespace
}  // namespace spel::kernels
