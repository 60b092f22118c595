// The 16 virtual lanes with 64 bits each, as two AVX-512 registers. Included after avx512.h.
#pragma once

#include "kernels/vec/avx512.h"

namespace spel::kernels {
namespace {

struct D16 {
  __m512d lo, hi;
};
struct W16 {
  __m512i lo, hi;
};

inline D16 load(const double* p) { return {_mm512_loadu_pd(p), _mm512_loadu_pd(p + 8)}; }
inline void store(double* p, D16 a) {
  _mm512_storeu_pd(p, a.lo);
  _mm512_storeu_pd(p + 8, a.hi);
}
inline D16 widen(F16 a) {
  return {_mm512_cvtps_pd(_mm512_castps512_ps256(a.v)),
          _mm512_cvtps_pd(_mm512_extractf32x8_ps(a.v, 1))};
}
inline D16 splat_f64(double x) { return {_mm512_set1_pd(x), _mm512_set1_pd(x)}; }
inline D16 add(D16 a, D16 b) { return {_mm512_add_pd(a.lo, b.lo), _mm512_add_pd(a.hi, b.hi)}; }
inline D16 sub(D16 a, D16 b) { return {_mm512_sub_pd(a.lo, b.lo), _mm512_sub_pd(a.hi, b.hi)}; }
inline D16 mul(D16 a, D16 b) { return {_mm512_mul_pd(a.lo, b.lo), _mm512_mul_pd(a.hi, b.hi)}; }
inline D16 div(D16 a, D16 b) { return {_mm512_div_pd(a.lo, b.lo), _mm512_div_pd(a.hi, b.hi)}; }
inline D16 fma(D16 a, D16 b, D16 c) {
  return {_mm512_fmadd_pd(a.lo, b.lo, c.lo), _mm512_fmadd_pd(a.hi, b.hi, c.hi)};
}
/// a > b ? a : b, so a NaN in either place gives b.
inline D16 max(D16 a, D16 b) { return {_mm512_max_pd(a.lo, b.lo), _mm512_max_pd(a.hi, b.hi)}; }
/// a < b ? a : b
inline D16 min(D16 a, D16 b) { return {_mm512_min_pd(a.lo, b.lo), _mm512_min_pd(a.hi, b.hi)}; }
/// The fixed tree: lanes l and l+8, then l+4, l+2, l+1.
inline double sum_lanes(D16 a) {
  const __m512d eight = _mm512_add_pd(a.lo, a.hi);
  const __m256d four =
      _mm256_add_pd(_mm512_castpd512_pd256(eight), _mm512_extractf64x4_pd(eight, 1));
  const __m128d two = _mm_add_pd(_mm256_castpd256_pd128(four), _mm256_extractf128_pd(four, 1));
  return _mm_cvtsd_f64(_mm_add_sd(two, _mm_unpackhi_pd(two, two)));
}

inline W16 bits(D16 a) { return {_mm512_castpd_si512(a.lo), _mm512_castpd_si512(a.hi)}; }
inline D16 from_bits(W16 a) { return {_mm512_castsi512_pd(a.lo), _mm512_castsi512_pd(a.hi)}; }
inline W16 splat_u64(std::uint64_t x) {
  const __m512i v = _mm512_set1_epi64(static_cast<long long>(x));
  return {v, v};
}
/// 0, 1, … 15
inline W16 lane_numbers() {
  return {_mm512_setr_epi64(0, 1, 2, 3, 4, 5, 6, 7),
          _mm512_setr_epi64(8, 9, 10, 11, 12, 13, 14, 15)};
}
inline W16 add(W16 a, W16 b) {
  return {_mm512_add_epi64(a.lo, b.lo), _mm512_add_epi64(a.hi, b.hi)};
}
inline W16 sub(W16 a, W16 b) {
  return {_mm512_sub_epi64(a.lo, b.lo), _mm512_sub_epi64(a.hi, b.hi)};
}
/// The product modulo 2^64.
inline W16 mul(W16 a, W16 b) {
  return {_mm512_mullo_epi64(a.lo, b.lo), _mm512_mullo_epi64(a.hi, b.hi)};
}
inline W16 bit_xor(W16 a, W16 b) {
  return {_mm512_xor_si512(a.lo, b.lo), _mm512_xor_si512(a.hi, b.hi)};
}
inline W16 bit_or(W16 a, W16 b) {
  return {_mm512_or_si512(a.lo, b.lo), _mm512_or_si512(a.hi, b.hi)};
}
template <int N>
inline W16 shift_left(W16 a) {
  return {_mm512_slli_epi64(a.lo, N), _mm512_slli_epi64(a.hi, N)};
}
template <int N>
inline W16 shift_right(W16 a) {
  return {_mm512_srli_epi64(a.lo, N), _mm512_srli_epi64(a.hi, N)};
}
/// The upper half of each lane.
inline I16 high_words(W16 a) {
  const __m512i odd = _mm512_setr_epi32(1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23, 25, 27, 29, 31);
  return {_mm512_permutex2var_epi32(a.lo, odd, a.hi)};
}

/// Bit l: a <= b in lane l; not where either is NaN.
inline unsigned at_most(F16 a, F16 b) { return _mm512_cmp_ps_mask(a.v, b.v, _CMP_LE_OQ); }

}  // namespace
}  // namespace spel::kernels
