// The 16 virtual lanes as four NEON registers: register i holds lanes 4 i … 4 i + 3. Included by
// neon.cpp alone.
#pragma once

#include <arm_neon.h>
#include <cstddef>
#include <cstdint>

#include "kernels/vec/interleave.h"

namespace spel::kernels {
namespace {

struct F16 {
  float32x4_t v[4];
};
struct I16 {
  int32x4_t v[4];
};

constexpr int kDenseTileRows = 6;
constexpr std::size_t kPrefetchLines = 128;
constexpr int dense_panels(int rows) { return rows == 1 ? 4 : rows <= 3 ? 2 : 1; }
constexpr int kMaskedFieldRows = 1;
constexpr int masked_field_panels(int) { return 1; }
constexpr int kTernaryTileRows = 6;
constexpr int shifted_field_panels(int) { return 1; }
/// The dot product is signed x signed, so the bias of the stored weights is taken off first …
constexpr bool kInt8Biased = false;
/// … and the top field, which would be negative in place, is shifted down.
constexpr int kFieldShift[4] = {0, 2, 4, 0};
constexpr int attention_vectors(int queries) { return 4 / queries; }

template <class Result, class Op>
inline Result each_register(Op op) {
  return {{op(0), op(1), op(2), op(3)}};
}

inline F16 load(const float* p) {
  return each_register<F16>([&](int i) { return vld1q_f32(p + 4 * i); });
}
inline void store(float* p, F16 a) {
  for (int i = 0; i < 4; ++i) {
    vst1q_f32(p + 4 * i, a.v[i]);
  }
}
/// This set has no stores past the caches: plain ones.
inline void store_streamed(float* p, F16 a) { store(p, a); }
inline void end_streamed_stores() {}
inline F16 load_partial(const float* p, std::size_t n) {
  float lanes[16] = {};
  for (std::size_t i = 0; i < n; ++i) {
    lanes[i] = p[i];
  }
  return load(lanes);
}
inline void store_partial(float* p, std::size_t n, F16 a) {
  float lanes[16];
  store(lanes, a);
  for (std::size_t i = 0; i < n; ++i) {
    p[i] = lanes[i];
  }
}
/// load_partial and store_partial for n <= 16, n = 16 being usual.
inline F16 load_lanes(const float* p, std::size_t n) {
  if (n == 16) {
    return load(p);
  }
  return load_partial(p, n);
}
inline void store_lanes(float* p, std::size_t n, F16 a) {
  if (n == 16) {
    store(p, a);
  } else {
    store_partial(p, n, a);
  }
}
inline F16 splat(float x) {
  const float32x4_t v = vdupq_n_f32(x);
  return {{v, v, v, v}};
}
inline F16 add(F16 a, F16 b) {
  return each_register<F16>([&](int i) { return vaddq_f32(a.v[i], b.v[i]); });
}
inline F16 sub(F16 a, F16 b) {
  return each_register<F16>([&](int i) { return vsubq_f32(a.v[i], b.v[i]); });
}
inline F16 mul(F16 a, F16 b) {
  return each_register<F16>([&](int i) { return vmulq_f32(a.v[i], b.v[i]); });
}
inline F16 div(F16 a, F16 b) {
  return each_register<F16>([&](int i) { return vdivq_f32(a.v[i], b.v[i]); });
}
inline F16 fma(F16 a, F16 b, F16 c) {
  return each_register<F16>([&](int i) { return vfmaq_f32(c.v[i], a.v[i], b.v[i]); });
}
/// a > b ? a : b, so a NaN in either place gives b; fmax would differ there.
inline float32x4_t max_register(float32x4_t a, float32x4_t b) {
  return vbslq_f32(vcgtq_f32(a, b), a, b);
}
inline F16 max(F16 a, F16 b) {
  return each_register<F16>([&](int i) { return max_register(a.v[i], b.v[i]); });
}
inline F16 min(F16 a, F16 b) {
  return each_register<F16>(
      [&](int i) { return vbslq_f32(vcltq_f32(a.v[i], b.v[i]), a.v[i], b.v[i]); });
}
inline F16 abs(F16 a) {
  return each_register<F16>([&](int i) { return vabsq_f32(a.v[i]); });
}
inline F16 swap_pairs(F16 a) {
  return each_register<F16>([&](int i) { return vrev64q_f32(a.v[i]); });
}
inline F16 load_doubled(const float* p) {
  const float32x4_t low = vld1q_f32(p);
  const float32x4_t high = vld1q_f32(p + 4);
  return {
      {vzip1q_f32(low, low), vzip2q_f32(low, low), vzip1q_f32(high, high), vzip2q_f32(high, high)}};
}
inline F16 negate_even(F16 a) {
  const uint32x4_t sign = vreinterpretq_u32_u64(vdupq_n_u64(0x80000000ULL));
  return each_register<F16>(
      [&](int i) { return vreinterpretq_f32_u32(veorq_u32(vreinterpretq_u32_f32(a.v[i]), sign)); });
}

inline I16 bits(F16 a) {
  return each_register<I16>([&](int i) { return vreinterpretq_s32_f32(a.v[i]); });
}
inline F16 from_bits(I16 a) {
  return each_register<F16>([&](int i) { return vreinterpretq_f32_s32(a.v[i]); });
}
inline I16 load_words(const void* p) {
  const auto* bytes = static_cast<const std::uint8_t*>(p);
  return each_register<I16>([&](int i) { return vreinterpretq_s32_u8(vld1q_u8(bytes + 16 * i)); });
}
inline I16 splat_word(std::int32_t x) {
  const int32x4_t v = vdupq_n_s32(x);
  return {{v, v, v, v}};
}
inline I16 add(I16 a, I16 b) {
  return each_register<I16>([&](int i) { return vaddq_s32(a.v[i], b.v[i]); });
}
inline I16 sub(I16 a, I16 b) {
  return each_register<I16>([&](int i) { return vsubq_s32(a.v[i], b.v[i]); });
}
template <int N>
inline I16 shift_left(I16 a) {
  return each_register<I16>([&](int i) { return vshlq_n_s32(a.v[i], N); });
}
template <int N>
inline I16 shift_right_signed(I16 a) {
  if constexpr (N == 0) {
    return a;
  } else {
    return each_register<I16>([&](int i) { return vshrq_n_s32(a.v[i], N); });
  }
}
inline F16 to_float(I16 a) {
  return each_register<F16>([&](int i) { return vcvtq_f32_s32(a.v[i]); });
}
/// Nearest integer, halves to even; |a| <= 127.
inline void store_rounded_int8(std::int8_t* q, F16 a) {
  const int16x8_t low =
      vcombine_s16(vmovn_s32(vcvtnq_s32_f32(a.v[0])), vmovn_s32(vcvtnq_s32_f32(a.v[1])));
  const int16x8_t high =
      vcombine_s16(vmovn_s32(vcvtnq_s32_f32(a.v[2])), vmovn_s32(vcvtnq_s32_f32(a.v[3])));
  vst1q_s8(q, vcombine_s8(vmovn_s16(low), vmovn_s16(high)));
}

inline F16 load_bf16(const std::uint16_t* p) {
  return each_register<F16>(
      [&](int i) { return vreinterpretq_f32_u32(vshll_n_u16(vld1_u16(p + 4 * i), 16)); });
}
/// The lane before, 0 in the first.
inline I16 shift_up(I16 a) {
  return {{vextq_s32(vdupq_n_s32(0), a.v[0], 3), vextq_s32(a.v[0], a.v[1], 3),
           vextq_s32(a.v[1], a.v[2], 3), vextq_s32(a.v[2], a.v[3], 3)}};
}
inline F16 bf16_low(I16 a) { return from_bits(shift_left<16>(a)); }
inline F16 bf16_high(I16 a) {
  const int32x4_t mask = vdupq_n_s32(static_cast<std::int32_t>(0xFFFF0000U));
  return each_register<F16>([&](int i) { return vreinterpretq_f32_s32(vandq_s32(a.v[i], mask)); });
}

/// Per lane, acc + sum of four products; u stays below 128.
inline I16 dot_bytes(I16 acc, I16 u, I16 s) {
  return each_register<I16>([&](int i) {
    return vdotq_s32(acc.v[i], vreinterpretq_s8_s32(u.v[i]), vreinterpretq_s8_s32(s.v[i]));
  });
}
inline I16 dot_weights(I16 acc, I16 w, I16 x) {
  const int32x4_t bias = vreinterpretq_s32_u8(vdupq_n_u8(0x80));
  const I16 value = each_register<I16>([&](int i) { return veorq_s32(w.v[i], bias); });
  return dot_bytes(acc, value, x);
}
/// Codes of field F as bytes 0, 1, 2.
template <int F>
inline I16 codes(I16 packed) {
  return each_register<I16>([&](int i) {
    const uint8x16_t bytes = vreinterpretq_u8_s32(packed.v[i]);
    if constexpr (F == 0) {
      return vreinterpretq_s32_u8(vandq_u8(bytes, vdupq_n_u8(3)));
    } else {
      return vreinterpretq_s32_u8(vandq_u8(vshrq_n_u8(bytes, 2 * F), vdupq_n_u8(3)));
    }
  });
}
/// The codes of field F times 2^kFieldShift[F], as bytes.
template <int F>
inline I16 masked_field(I16 packed) {
  if constexpr (F == 3) {
    return codes<3>(packed);
  } else {
    const int32x4_t mask =
        vreinterpretq_s32_u8(vdupq_n_u8(static_cast<std::uint8_t>(3 << (2 * F))));
    return each_register<I16>([&](int i) { return vandq_s32(packed.v[i], mask); });
  }
}
/// Adds x where the code is 2, subtracts it where it is 0.
inline I16 add_sub(I16 acc, I16 code, I16 x) {
  return each_register<I16>([&](int i) {
    const int8x16_t c = vreinterpretq_s8_s32(code.v[i]);
    const int8x16_t bytes = vreinterpretq_s8_s32(x.v[i]);
    const uint8x16_t plus = vceqq_s8(c, vdupq_n_s8(2));
    const uint8x16_t minus = vceqzq_s8(c);
    const int8x16_t kept = vandq_s8(bytes, vreinterpretq_s8_u8(plus));
    const int8x16_t taken = vandq_s8(bytes, vreinterpretq_s8_u8(minus));
    return vpadalq_s16(acc.v[i], vpaddlq_s8(vsubq_s8(kept, taken)));
  });
}

inline void prefetch(const void* p) { __builtin_prefetch(p); }
inline float square_root(float x) { return vget_lane_f32(vsqrt_f32(vdup_n_f32(x)), 0); }
inline float fma_one(float a, float b, float c) { return __builtin_fmaf(a, b, c); }

/// The fixed tree: lanes l and l+8, then l+4, l+2, l+1.
inline float sum_lanes(F16 a) {
  const float32x4_t four = vaddq_f32(vaddq_f32(a.v[0], a.v[2]), vaddq_f32(a.v[1], a.v[3]));
  const float32x2_t two = vadd_f32(vget_low_f32(four), vget_high_f32(four));
  return vget_lane_f32(two, 0) + vget_lane_f32(two, 1);
}
inline float max_lanes(F16 a) {
  const float32x4_t four = max_register(max_register(a.v[0], a.v[2]), max_register(a.v[1], a.v[3]));
  float lanes[4];
  vst1q_f32(lanes, four);
  const float even = lanes[0] > lanes[2] ? lanes[0] : lanes[2];
  const float odd = lanes[1] > lanes[3] ? lanes[1] : lanes[3];
  return even > odd ? even : odd;
}
inline std::int32_t max_lanes(I16 a) {
  return vmaxvq_s32(vmaxq_s32(vmaxq_s32(a.v[0], a.v[1]), vmaxq_s32(a.v[2], a.v[3])));
}
inline F16 sum_lanes_of_16(const F16 (&a)[16]) {
  float sums[16];
  for (int i = 0; i < 16; ++i) {
    sums[i] = sum_lanes(a[i]);
  }
  return load(sums);
}

// --- The same lanes with 64 bits each ------------------------------------------------------------

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
