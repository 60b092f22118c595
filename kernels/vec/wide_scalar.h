// The 16 virtual lanes with 64 bits each, as plain arrays. Included after scalar.h.
#pragma once

#include "kernels/vec/scalar.h"

namespace spel::kernels {
namespace {

struct D16 {
  double v[16];
};
struct W16 {
  std::uint64_t v[16];
};

inline double as_double(std::uint64_t x) { return __builtin_bit_cast(double, x); }
inline std::uint64_t as_word(double x) { return __builtin_bit_cast(std::uint64_t, x); }

inline D16 load(const double* p) {
  return each_lane<D16>([&](int i) { return p[i]; });
}
inline void store(double* p, const D16& a) {
  for (int i = 0; i < 16; ++i) {
    p[i] = a.v[i];
  }
}
inline D16 widen(F16 a) {
  return each_lane<D16>([&](int i) { return static_cast<double>(a.v[i]); });
}
inline D16 splat_f64(double x) {
  return each_lane<D16>([&](int) { return x; });
}
inline D16 add(const D16& a, const D16& b) {
  return each_lane<D16>([&](int i) { return a.v[i] + b.v[i]; });
}
inline D16 sub(const D16& a, const D16& b) {
  return each_lane<D16>([&](int i) { return a.v[i] - b.v[i]; });
}
inline D16 mul(const D16& a, const D16& b) {
  return each_lane<D16>([&](int i) { return a.v[i] * b.v[i]; });
}
inline D16 div(const D16& a, const D16& b) {
  return each_lane<D16>([&](int i) { return a.v[i] / b.v[i]; });
}
inline D16 fma(const D16& a, const D16& b, const D16& c) {
  return each_lane<D16>([&](int i) { return __builtin_fma(a.v[i], b.v[i], c.v[i]); });
}
/// a > b ? a : b, so a NaN in either place gives b.
inline D16 max(const D16& a, const D16& b) {
  return each_lane<D16>([&](int i) { return a.v[i] > b.v[i] ? a.v[i] : b.v[i]; });
}
/// a < b ? a : b
inline D16 min(const D16& a, const D16& b) {
  return each_lane<D16>([&](int i) { return a.v[i] < b.v[i] ? a.v[i] : b.v[i]; });
}
/// The fixed tree: lanes l and l+8, then l+4, l+2, l+1.
inline double sum_lanes(D16 a) {
  for (int half = 8; half > 0; half /= 2) {
    for (int l = 0; l < half; ++l) {
      a.v[l] += a.v[l + half];
    }
  }
  return a.v[0];
}

inline W16 bits(const D16& a) {
  return each_lane<W16>([&](int i) { return as_word(a.v[i]); });
}
inline D16 from_bits(const W16& a) {
  return each_lane<D16>([&](int i) { return as_double(a.v[i]); });
}
inline W16 splat_u64(std::uint64_t x) {
  return each_lane<W16>([&](int) { return x; });
}
/// 0, 1, … 15
inline W16 lane_numbers() {
  return each_lane<W16>([](int i) { return static_cast<std::uint64_t>(i); });
}
inline W16 add(const W16& a, const W16& b) {
  return each_lane<W16>([&](int i) { return a.v[i] + b.v[i]; });
}
inline W16 sub(const W16& a, const W16& b) {
  return each_lane<W16>([&](int i) { return a.v[i] - b.v[i]; });
}
/// The product modulo 2^64.
inline W16 mul(const W16& a, const W16& b) {
  return each_lane<W16>([&](int i) { return a.v[i] * b.v[i]; });
}
inline W16 bit_xor(const W16& a, const W16& b) {
  return each_lane<W16>([&](int i) { return a.v[i] ^ b.v[i]; });
}
inline W16 bit_or(const W16& a, const W16& b) {
  return each_lane<W16>([&](int i) { return a.v[i] | b.v[i]; });
}
template <int N>
inline W16 shift_left(const W16& a) {
  return each_lane<W16>([&](int i) { return a.v[i] << N; });
}
template <int N>
inline W16 shift_right(const W16& a) {
  return each_lane<W16>([&](int i) { return a.v[i] >> N; });
}
/// The upper half of each lane.
inline I16 high_words(const W16& a) {
  return each_lane<I16>([&](int i) { return wrap(static_cast<std::uint32_t>(a.v[i] >> 32)); });
}

/// Bit l: a <= b in lane l; not where either is NaN.
inline unsigned at_most(F16 a, F16 b) {
  unsigned mask = 0;
  for (int i = 0; i < 16; ++i) {
    mask |= (a.v[i] <= b.v[i] ? 1U : 0U) << i;
  }
  return mask;
}

}  // namespace
}  // namespace spel::kernels
