// exp, sigmoid and silu on 16 virtual lanes: the sequences of scalar_math.cpp, lane by lane.
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
inline F16 silu_lanes(F16 x) { return div(x, one_plus_exp_minus(x)); }

}  // namespace
}  // namespace spel::kernels
