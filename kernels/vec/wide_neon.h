// The 16 virtual lanes with 64 bits each, as eight NEON registers: register i holds lanes 2 i and
// 2 i + 1. Included after neon.h.
#pragma once

#include "kernels/vec/neon.h"

namespace spel::kernels {
namespace {

struct D16 {
  float64x2_t v[8];
};
struct W16 {
  uint64x2_t v[8];
};

template <class Result, class Op>
inline Result each_pair(Op op) {
  return {{op(0), op(1), op(2), op(3), op(4), op(5), op(6), op(7)}};
}

inline D16 load(const double* p) {
  return each_pair<D16>([&](int i) { return vld1q_f64(p + 2 * i); });
}
inline void store(double* p, const D16& a) {
  for (int i = 0; i < 8; ++i) {
    vst1q_f64(p + 2 * i, a.v[i]);
  }
}
inline D16 widen(F16 a) {
  return each_pair<D16>([&](int i) {
    return i % 2 == 0 ? vcvt_f64_f32(vget_low_f32(a.v[i / 2])) : vcvt_high_f64_f32(a.v[i / 2]);
  });
}
inline D16 splat_f64(double x) {
  return each_pair<D16>([&](int) { return vdupq_n_f64(x); });
}
inline D16 add(const D16& a, const D16& b) {
  return each_pair<D16>([&](int i) { return vaddq_f64(a.v[i], b.v[i]); });
}
inline D16 sub(const D16& a, const D16& b) {
  return each_pair<D16>([&](int i) { return vsubq_f64(a.v[i], b.v[i]); });
}
inline D16 mul(const D16& a, const D16& b) {
  return each_pair<D16>([&](int i) { return vmulq_f64(a.v[i], b.v[i]); });
}
inline D16 div(const D16& a, const D16& b) {
  return each_pair<D16>([&](int i) { return vdivq_f64(a.v[i], b.v[i]); });
}
inline D16 fma(const D16& a, const D16& b, const D16& c) {
  return each_pair<D16>([&](int i) { return vfmaq_f64(c.v[i], a.v[i], b.v[i]); });
}
/// a > b ? a : b, so a NaN in either place gives b; fmax would differ there.
inline D16 max(const D16& a, const D16& b) {
  return each_pair<D16>(
      [&](int i) { return vbslq_f64(vcgtq_f64(a.v[i], b.v[i]), a.v[i], b.v[i]); });
}
/// a < b ? a : b
inline D16 min(const D16& a, const D16& b) {
  return each_pair<D16>(
      [&](int i) { return vbslq_f64(vcltq_f64(a.v[i], b.v[i]), a.v[i], b.v[i]); });
}
/// The fixed tree: lanes l and l+8, then l+4, l+2, l+1.
inline double sum_lanes(const D16& a) {
  const float64x2_t low = vaddq_f64(vaddq_f64(a.v[0], a.v[4]), vaddq_f64(a.v[2], a.v[6]));
  const float64x2_t high = vaddq_f64(vaddq_f64(a.v[1], a.v[5]), vaddq_f64(a.v[3], a.v[7]));
  const float64x2_t two = vaddq_f64(low, high);
  return vgetq_lane_f64(two, 0) + vgetq_lane_f64(two, 1);
}

inline W16 bits(const D16& a) {
  return each_pair<W16>([&](int i) { return vreinterpretq_u64_f64(a.v[i]); });
}
inline D16 from_bits(const W16& a) {
  return each_pair<D16>([&](int i) { return vreinterpretq_f64_u64(a.v[i]); });
}
inline W16 splat_u64(std::uint64_t x) {
  return each_pair<W16>([&](int) { return vdupq_n_u64(x); });
}
/// 0, 1, … 15
inline W16 lane_numbers() {
  return each_pair<W16>([](int i) {
    const auto even = static_cast<std::uint64_t>(2 * i);
    return vcombine_u64(vcreate_u64(even), vcreate_u64(even + 1));
  });
}
inline W16 add(const W16& a, const W16& b) {
  return each_pair<W16>([&](int i) { return vaddq_u64(a.v[i], b.v[i]); });
}
inline W16 sub(const W16& a, const W16& b) {
  return each_pair<W16>([&](int i) { return vsubq_u64(a.v[i], b.v[i]); });
}
/// The product modulo 2^64, from three products of 32-bit halves.
inline uint64x2_t mul_pair(uint64x2_t a, uint64x2_t b) {
  const uint32x2_t a_low = vmovn_u64(a);
  const uint32x2_t b_low = vmovn_u64(b);
  const uint64x2_t crossed =
      vmlal_u32(vmull_u32(vshrn_n_u64(a, 32), b_low), a_low, vshrn_n_u64(b, 32));
  return vaddq_u64(vmull_u32(a_low, b_low), vshlq_n_u64(crossed, 32));
}
inline W16 mul(const W16& a, const W16& b) {
  return each_pair<W16>([&](int i) { return mul_pair(a.v[i], b.v[i]); });
}
inline W16 bit_xor(const W16& a, const W16& b) {
  return each_pair<W16>([&](int i) { return veorq_u64(a.v[i], b.v[i]); });
}
inline W16 bit_or(const W16& a, const W16& b) {
  return each_pair<W16>([&](int i) { return vorrq_u64(a.v[i], b.v[i]); });
}
template <int N>
inline W16 shift_left(const W16& a) {
  return each_pair<W16>([&](int i) { return vshlq_n_u64(a.v[i], N); });
}
template <int N>
inline W16 shift_right(const W16& a) {
  return each_pair<W16>([&](int i) { return vshrq_n_u64(a.v[i], N); });
}
/// The upper half of each lane.
inline I16 high_words(const W16& a) {
  return each_register<I16>([&](int i) {
    return vreinterpretq_s32_u32(
        vuzp2q_u32(vreinterpretq_u32_u64(a.v[2 * i]), vreinterpretq_u32_u64(a.v[2 * i + 1])));
  });
}

/// Bit l: a <= b in lane l; not where either is NaN.
inline unsigned at_most(F16 a, F16 b) {
  constexpr std::uint32_t kPlaces[4] = {1, 2, 4, 8};
  const uint32x4_t places = vld1q_u32(kPlaces);
  unsigned mask = 0;
  for (int i = 0; i < 4; ++i) {
    mask |= vaddvq_u32(vandq_u32(vcleq_f32(a.v[i], b.v[i]), places)) << (4 * i);
  }
  return mask;
}

}  // namespace
}  // namespace spel::kernels
