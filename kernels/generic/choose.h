// Passes over the logits of one row, for choosing a token: the largest of each block, what reaches
// a threshold, what can still win the race of logits and noise, and the sum of a softmax.
#pragma once

#include "kernels/counter.h"
#include "kernels/generic/rows.h"

namespace spel::kernels {
namespace {

inline void block_max(const float* x, std::size_t n, float* largest) {
  std::size_t i = 0;
  for (; i + kMaxBlock <= n; i += kMaxBlock) {
    F16 block = splat(-__builtin_inff());
#pragma GCC unroll 4
    for (std::size_t j = 0; j < kMaxBlock; j += 16) {
      block = max(load(x + i + j), block);
    }
    *largest++ = max_lanes(block);
  }
  if (i < n) {
    *largest = max_of_row(x + i, n - i);
  }
}

/// Appends i + l to `places` for each bit l of `lanes`.
inline std::uint32_t* add_places(unsigned lanes, std::size_t i, std::uint32_t* places) {
  for (; lanes != 0; lanes &= lanes - 1) {
    *places++ = static_cast<std::uint32_t>(i) + static_cast<std::uint32_t>(__builtin_ctz(lanes));
  }
  return places;
}

/// Calls op(i, lanes of x) for every 16 elements, which tells by bits which of them are wanted;
/// returns how many were, their places in `places`.
template <class Op>
inline std::size_t places_where(const float* x, std::size_t n, std::uint32_t* places, Op op) {
  std::uint32_t* end = places;
  std::size_t i = 0;
  for (; i + 16 <= n; i += 16) {
    end = add_places(op(i, load(x + i)), i, end);
  }
  if (i < n) {
    const unsigned lanes = op(i, load_partial(x + i, n - i));
    end = add_places(lanes & ((1U << (n - i)) - 1U), i, end);
  }
  return static_cast<std::size_t>(end - places);
}

inline std::size_t places_at_least(const float* x, std::size_t n, float least,
                                   std::uint32_t* places) {
  const F16 bound = splat(least);
  return places_where(x, n, places, [&](std::size_t, F16 v) { return at_most(bound, v); });
}

/// The finaliser of SplitMix64, as in counter.h.
inline W16 mix_lanes(W16 x) {
  x = add(x, splat_u64(kMixStep));
  x = mul(bit_xor(x, shift_right<30>(x)), splat_u64(kMixFirst));
  x = mul(bit_xor(x, shift_right<27>(x)), splat_u64(kMixSecond));
  return bit_xor(x, shift_right<31>(x));
}

inline std::size_t race(const float* x, std::size_t n, const Race& rules, std::uint32_t* places) {
  const F16 top = splat(rules.top);
  const F16 slope = splat(rules.slope);
  const F16 level = splat(rules.level);
  const W16 stream = splat_u64(rules.stream);
  const W16 ones = splat_u64(~std::uint64_t{0});
  const W16 exponent = splat_u64(kDrawExponent);
  const D16 offset = splat_f64(kDrawOffset);
  return places_where(x, n, places, [&](std::size_t i, F16 v) {
    const W16 ids = add(splat_u64(rules.first + i), lane_numbers());
    const W16 draw = mix_lanes(bit_xor(stream, ids));
    const W16 missing = shift_right<kDrawShift>(bit_xor(draw, ones));
    const D16 shortfall = sub(from_bits(bit_or(missing, exponent)), offset);
    return at_most(to_float(high_words(bits(shortfall))), fma(sub(v, top), slope, level));
  });
}

/// exp_f64() of scalar_math.cpp, lane by lane; but NaN gives what -inf gives: 0.
inline D16 exp_lanes_or_zero(D16 x) {
  x = min(max(x, splat_f64(kExpLow64)), splat_f64(kExpHigh64));
  const D16 magic = splat_f64(kRoundMagic64);
  const D16 shifted = fma(x, splat_f64(kLog2E64), magic);
  const D16 whole = sub(shifted, magic);
  D16 r = fma(whole, splat_f64(-kLn2Hi64), x);
  r = fma(whole, splat_f64(-kLn2Lo64), r);
  D16 p = splat_f64(kExp64[0]);
#pragma GCC unroll 16
  for (int i = 1; i < kExpTerms64; ++i) {
    p = fma(p, r, splat_f64(kExp64[i]));
  }
  // 2^n in two factors, n halved towards -inf. The shift has no sign: 2048 more keeps n positive.
  const W16 n = sub(bits(shifted), bits(magic));
  const W16 half = shift_right<1>(add(n, splat_u64(2048)));
  const D16 first = from_bits(shift_left<52>(sub(half, splat_u64(1))));
  const D16 second = from_bits(shift_left<52>(add(sub(n, half), splat_u64(1024 + 1023))));
  return mul(mul(p, first), second);
}

inline void exp_f64(const double* x, std::size_t n, double* y) {
  std::size_t i = 0;
  for (; i + 16 <= n; i += 16) {
    store(y + i, exp_lanes_or_zero(load(x + i)));
  }
  if (i < n) {
    double tail[16] = {};
    for (std::size_t lane = 0; lane < n - i; ++lane) {
      tail[lane] = x[i + lane];
    }
    store(tail, exp_lanes_or_zero(load(tail)));
    for (std::size_t lane = 0; lane < n - i; ++lane) {
      y[i + lane] = tail[lane];
    }
  }
}

inline double softmax_sum(const float* x, std::size_t n, double temperature, double top) {
  const D16 divisor = splat_f64(temperature);
  const D16 shift = splat_f64(top);
  D16 sum = splat_f64(0.0);
  for (std::size_t i = 0; i < n; i += 16) {
    F16 logits;
    if (i + 16 <= n) {
      logits = load(x + i);
    } else {
      float tail[16];
      for (std::size_t lane = 0; lane < 16; ++lane) {
        tail[lane] = i + lane < n ? x[i + lane] : __builtin_nanf("");
      }
      logits = load(tail);
    }
    const D16 scores = temperature == 1.0 ? widen(logits) : div(widen(logits), divisor);
    sum = add(sum, exp_lanes_or_zero(sub(scores, shift)));
  }
  return sum_lanes(sum);
}

}  // namespace
}  // namespace spel::kernels
