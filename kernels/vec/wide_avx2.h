// The 16 virtual lanes with 64 bits each, as four AVX2 registers: register i holds lanes
// 4 i … 4 i + 3. Included after avx2.h.
#pragma once

#include "kernels/vec/avx2.h"

namespace spel::kernels {
namespace {

struct D16 {
  __m256d v[4];
};
struct W16 {
  __m256i v[4];
};

template <class Result, class Op>
inline Result each_quarter(Op op) {
  return {{op(0), op(1), op(2), op(3)}};
}

inline D16 load(const double* p) {
  return each_quarter<D16>([&](int i) { return _mm256_loadu_pd(p + 4 * i); });
}
inline void store(double* p, const D16& a) {
  for (int i = 0; i < 4; ++i) {
    _mm256_storeu_pd(p + 4 * i, a.v[i]);
  }
}
inline D16 widen(F16 a) {
  return {{_mm256_cvtps_pd(_mm256_castps256_ps128(a.lo)),
           _mm256_cvtps_pd(_mm256_extractf128_ps(a.lo, 1)),
           _mm256_cvtps_pd(_mm256_castps256_ps128(a.hi)),
           _mm256_cvtps_pd(_mm256_extractf128_ps(a.hi, 1))}};
}
inline D16 splat_f64(double x) {
  const __m256d v = _mm256_set1_pd(x);
  return {{v, v, v, v}};
}
inline D16 add(const D16& a, const D16& b) {
  return each_quarter<D16>([&](int i) { return _mm256_add_pd(a.v[i], b.v[i]); });
}
inline D16 sub(const D16& a, const D16& b) {
  return each_quarter<D16>([&](int i) { return _mm256_sub_pd(a.v[i], b.v[i]); });
}
inline D16 mul(const D16& a, const D16& b) {
  return each_quarter<D16>([&](int i) { return _mm256_mul_pd(a.v[i], b.v[i]); });
}
inline D16 div(const D16& a, const D16& b) {
  return each_quarter<D16>([&](int i) { return _mm256_div_pd(a.v[i], b.v[i]); });
}
inline D16 fma(const D16& a, const D16& b, const D16& c) {
  return each_quarter<D16>([&](int i) { return _mm256_fmadd_pd(a.v[i], b.v[i], c.v[i]); });
}
/// a > b ? a : b, so a NaN in either place gives b.
inline D16 max(const D16& a, const D16& b) {
  return each_quarter<D16>([&](int i) { return _mm256_max_pd(a.v[i], b.v[i]); });
}
/// a < b ? a : b
inline D16 min(const D16& a, const D16& b) {
  return each_quarter<D16>([&](int i) { return _mm256_min_pd(a.v[i], b.v[i]); });
}
/// The fixed tree: lanes l and l+8, then l+4, l+2, l+1.
inline double sum_lanes(const D16& a) {
  const __m256d four = _mm256_add_pd(_mm256_add_pd(a.v[0], a.v[2]), _mm256_add_pd(a.v[1], a.v[3]));
  const __m128d two = _mm_add_pd(_mm256_castpd256_pd128(four), _mm256_extractf128_pd(four, 1));
  return _mm_cvtsd_f64(_mm_add_sd(two, _mm_unpackhi_pd(two, two)));
}

inline W16 bits(const D16& a) {
  return each_quarter<W16>([&](int i) { return _mm256_castpd_si256(a.v[i]); });
}
inline D16 from_bits(const W16& a) {
  return each_quarter<D16>([&](int i) { return _mm256_castsi256_pd(a.v[i]); });
}
inline W16 splat_u64(std::uint64_t x) {
  const __m256i v = _mm256_set1_epi64x(static_cast<long long>(x));
  return {{v, v, v, v}};
}
/// 0, 1, … 15
inline W16 lane_numbers() {
  return {{_mm256_setr_epi64x(0, 1, 2, 3), _mm256_setr_epi64x(4, 5, 6, 7),
           _mm256_setr_epi64x(8, 9, 10, 11), _mm256_setr_epi64x(12, 13, 14, 15)}};
}
inline W16 add(const W16& a, const W16& b) {
  return each_quarter<W16>([&](int i) { return _mm256_add_epi64(a.v[i], b.v[i]); });
}
inline W16 sub(const W16& a, const W16& b) {
  return each_quarter<W16>([&](int i) { return _mm256_sub_epi64(a.v[i], b.v[i]); });
}
/// The product modulo 2^64, from three products of 32-bit halves.
inline __m256i mul_quarter(__m256i a, __m256i b) {
  const __m256i low = _mm256_mul_epu32(a, b);
  const __m256i crossed = _mm256_add_epi64(_mm256_mul_epu32(_mm256_srli_epi64(a, 32), b),
                                           _mm256_mul_epu32(a, _mm256_srli_epi64(b, 32)));
  return _mm256_add_epi64(low, _mm256_slli_epi64(crossed, 32));
}
inline W16 mul(const W16& a, const W16& b) {
  return each_quarter<W16>([&](int i) { return mul_quarter(a.v[i], b.v[i]); });
}
inline W16 bit_xor(const W16& a, const W16& b) {
  return each_quarter<W16>([&](int i) { return _mm256_xor_si256(a.v[i], b.v[i]); });
}
inline W16 bit_or(const W16& a, const W16& b) {
  return each_quarter<W16>([&](int i) { return _mm256_or_si256(a.v[i], b.v[i]); });
}
template <int N>
inline W16 shift_left(const W16& a) {
  return each_quarter<W16>([&](int i) { return _mm256_slli_epi64(a.v[i], N); });
}
template <int N>
inline W16 shift_right(const W16& a) {
  return each_quarter<W16>([&](int i) { return _mm256_srli_epi64(a.v[i], N); });
}
inline __m256i high_words_of_pair(__m256i a, __m256i b) {
  // The shuffle works within 128-bit halves; the permute puts the eight words back in order.
  const __m256 words = _mm256_shuffle_ps(_mm256_castsi256_ps(a), _mm256_castsi256_ps(b), 0xDD);
  return _mm256_permute4x64_epi64(_mm256_castps_si256(words), 0xD8);
}
/// The upper half of each lane.
inline I16 high_words(const W16& a) {
  return {high_words_of_pair(a.v[0], a.v[1]), high_words_of_pair(a.v[2], a.v[3])};
}

/// Bit l: a <= b in lane l; not where either is NaN.
inline unsigned at_most(F16 a, F16 b) {
  const int lo = _mm256_movemask_ps(_mm256_cmp_ps(a.lo, b.lo, _CMP_LE_OQ));
  const int hi = _mm256_movemask_ps(_mm256_cmp_ps(a.hi, b.hi, _CMP_LE_OQ));
  return static_cast<unsigned>(lo) | static_cast<unsigned>(hi) << 8;
}

}  // namespace
}  // namespace spel::kernels
