// exp, sigmoid, silu and softplus on 16 virtual lanes; exp by the sequence of scalar_math.cpp.
#pragma once

#include "kernels/polynomials.h"

namespace spel::kernels {
namespace {

inline F16 exp_lanes(F16 x) {
  // min and max keep their second argument when it is NaN: NaN goes through.
  x = max(splat(kExpLow), min(splat(kExpHigh), x));
  const F16 magic = splat(kRoundMagic);
  const F16 shifted = fma(x, splat(kLog2E), magic);
  const I16 n = sub(bits(shifted), bits(magic));
  const F16 whole = sub(shifted, magic);
  F16 r = fma(whole, splat(-kLn2Hi), x);
  r = fma(whole, splat(-kLn2Lo), r);
  F16 p = splat(kExpC7);
  p = fma(p, r, splat(kExpC6));
  p = fma(p, r, splat(kExpC5));
  p = fma(p, r, splat(kExpC4));
  p = fma(p, r, splat(kExpC3));
  p = fma(p, r, splat(kExpC2));
  p = fma(p, r, splat(1.0F));
  p = fma(p, r, splat(1.0F));
  // 2^n in two factors: n reaches past the exponents of normal numbers at both ends.
  const I16 half = shift_right_signed<1>(n);
  const I16 bias = splat_word(127);
  const F16 first = from_bits(shift_left<23>(add(half, bias)));
  const F16 second = from_bits(shift_left<23>(add(sub(n, half), bias)));
  return mul(mul(p, first), second);
}

inline F16 one_plus_exp_minus(F16 x) { return add(splat(1.0F), exp_lanes(sub(splat(0.0F), x))); }
inline F16 sigmoid_lanes(F16 x) { return div(splat(1.0F), one_plus_exp_minus(x)); }

/// log(1 + exp(x)) as max(x, 0) + log(1 + y), y = exp(-|x|) in [0, 1]. With s = y / (2 + y) the
/// logarithm is 2 (s + s^3/3 + s^5/5 + …) and 2 s = y - s y, so that only a correction of y is
/// rounded twice; the first term left out, s^17/17, is below 2^-29 of the sum.
inline F16 softplus_lanes(F16 x) {
  const F16 y = exp_lanes(sub(splat(0.0F), abs(x)));
  const F16 s = div(y, add(splat(2.0F), y));
  const F16 z = mul(s, s);
  F16 p = splat(2.0F / 15.0F);
  p = fma(p, z, splat(2.0F / 13.0F));
  p = fma(p, z, splat(2.0F / 11.0F));
  p = fma(p, z, splat(2.0F / 9.0F));
  p = fma(p, z, splat(2.0F / 7.0F));
  p = fma(p, z, splat(2.0F / 5.0F));
  p = fma(p, z, splat(2.0F / 3.0F));
  const F16 log = fma(s, sub(mul(p, z), y), y);
  return add(max(x, splat(0.0F)), log);
}

inline F16 silu_lanes(F16 x) { return div(x, one_plus_exp_minus(x)); }

}  // namespace
}  // namespace spel::kernels
