// The 16 virtual lanes as two AVX2 registers: lo holds lanes 0-7, hi lanes 8-15. Included by the
// two AVX2 files, which provide dot_bytes() and dot_weights() before the generic bodies.
#pragma once

#include <cstddef>
#include <cstdint>
#include <immintrin.h>

#include "kernels/vec/interleave.h"

namespace spel::kernels {
namespace {

struct F16 {
  __m256 lo, hi;
};
struct I16 {
  __m256i lo, hi;
};

constexpr int kDenseTileRows = 6;
constexpr std::size_t kPrefetchLines = 128;
constexpr int dense_panels(int rows) { return rows == 1 ? 4 : rows == 2 ? 2 : 1; }
constexpr int kMaskedFieldRows = 1;
constexpr int masked_field_panels(int) { return 1; }
constexpr int kTernaryTileRows = 6;
constexpr int shifted_field_panels(int) { return 1; }
constexpr int kFieldShift[4] = {0, 2, 4, 6};
constexpr int attention_vectors(int queries) { return 4 / queries; }

inline F16 load(const float* p) { return {_mm256_loadu_ps(p), _mm256_loadu_ps(p + 8)}; }
inline void store(float* p, F16 a) {
  _mm256_storeu_ps(p, a.lo);
  _mm256_storeu_ps(p + 8, a.hi);
}
/// To memory past the caches; p at the start of a line. Other threads see it after
/// end_streamed_stores().
inline void store_streamed(float* p, F16 a) {
  _mm256_stream_ps(p, a.lo);
  _mm256_stream_ps(p + 8, a.hi);
}
inline void end_streamed_stores() { _mm_sfence(); }
inline F16 load_partial(const float* p, std::size_t n) {
  alignas(32) float lanes[16] = {};
  for (std::size_t i = 0; i < n; ++i) {
    lanes[i] = p[i];
  }
  return load(lanes);
}
inline void store_partial(float* p, std::size_t n, F16 a) {
  alignas(32) float lanes[16];
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
inline F16 splat(float x) { return {_mm256_set1_ps(x), _mm256_set1_ps(x)}; }
inline F16 add(F16 a, F16 b) { return {_mm256_add_ps(a.lo, b.lo), _mm256_add_ps(a.hi, b.hi)}; }
inline F16 sub(F16 a, F16 b) { return {_mm256_sub_ps(a.lo, b.lo), _mm256_sub_ps(a.hi, b.hi)}; }
inline F16 mul(F16 a, F16 b) { return {_mm256_mul_ps(a.lo, b.lo), _mm256_mul_ps(a.hi, b.hi)}; }
inline F16 div(F16 a, F16 b) { return {_mm256_div_ps(a.lo, b.lo), _mm256_div_ps(a.hi, b.hi)}; }
inline F16 fma(F16 a, F16 b, F16 c) {
  return {_mm256_fmadd_ps(a.lo, b.lo, c.lo), _mm256_fmadd_ps(a.hi, b.hi, c.hi)};
}
/// a > b ? a : b, so a NaN in either place gives b.
inline F16 max(F16 a, F16 b) { return {_mm256_max_ps(a.lo, b.lo), _mm256_max_ps(a.hi, b.hi)}; }
inline F16 min(F16 a, F16 b) { return {_mm256_min_ps(a.lo, b.lo), _mm256_min_ps(a.hi, b.hi)}; }
inline F16 abs(F16 a) {
  const __m256 sign = _mm256_set1_ps(-0.0F);
  return {_mm256_andnot_ps(sign, a.lo), _mm256_andnot_ps(sign, a.hi)};
}
inline F16 swap_pairs(F16 a) {
  return {_mm256_permute_ps(a.lo, 0xB1), _mm256_permute_ps(a.hi, 0xB1)};
}
inline F16 load_doubled(const float* p) {
  const __m256 eight = _mm256_loadu_ps(p);
  const __m256 even = _mm256_unpacklo_ps(eight, eight);
  const __m256 odd = _mm256_unpackhi_ps(eight, eight);
  return {_mm256_permute2f128_ps(even, odd, 0x20), _mm256_permute2f128_ps(even, odd, 0x31)};
}
inline F16 negate_even(F16 a) {
  const __m256 sign = _mm256_castsi256_ps(_mm256_set1_epi64x(0x80000000LL));
  return {_mm256_xor_ps(a.lo, sign), _mm256_xor_ps(a.hi, sign)};
}

inline I16 bits(F16 a) { return {_mm256_castps_si256(a.lo), _mm256_castps_si256(a.hi)}; }
inline F16 from_bits(I16 a) { return {_mm256_castsi256_ps(a.lo), _mm256_castsi256_ps(a.hi)}; }
inline I16 load_words(const void* p) {
  const auto* words = static_cast<const __m256i*>(p);
  return {_mm256_loadu_si256(words), _mm256_loadu_si256(words + 1)};
}
inline I16 splat_word(std::int32_t x) { return {_mm256_set1_epi32(x), _mm256_set1_epi32(x)}; }
inline I16 add(I16 a, I16 b) {
  return {_mm256_add_epi32(a.lo, b.lo), _mm256_add_epi32(a.hi, b.hi)};
}
inline I16 sub(I16 a, I16 b) {
  return {_mm256_sub_epi32(a.lo, b.lo), _mm256_sub_epi32(a.hi, b.hi)};
}
template <int N>
inline I16 shift_left(I16 a) {
  return {_mm256_slli_epi32(a.lo, N), _mm256_slli_epi32(a.hi, N)};
}
template <int N>
inline I16 shift_right_signed(I16 a) {
  return {_mm256_srai_epi32(a.lo, N), _mm256_srai_epi32(a.hi, N)};
}
inline F16 to_float(I16 a) { return {_mm256_cvtepi32_ps(a.lo), _mm256_cvtepi32_ps(a.hi)}; }
inline void store_rounded_int8(std::int8_t* q, F16 a) {
  const __m256i lo = _mm256_cvtps_epi32(a.lo);
  const __m256i hi = _mm256_cvtps_epi32(a.hi);
  // packs works within 128-bit halves; the permutes put the sixteen values back in order.
  const __m256i words = _mm256_permute4x64_epi64(_mm256_packs_epi32(lo, hi), 0xD8);
  const __m128i packed =
      _mm_packs_epi16(_mm256_castsi256_si128(words), _mm256_extracti128_si256(words, 1));
  _mm_storeu_si128(reinterpret_cast<__m128i*>(q), packed);
}

inline __m256 load_bf16_half(const std::uint16_t* p) {
  const __m128i halves = _mm_loadu_si128(reinterpret_cast<const __m128i*>(p));
  return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(halves), 16));
}
inline F16 load_bf16(const std::uint16_t* p) { return {load_bf16_half(p), load_bf16_half(p + 8)}; }
/// The lane before, 0 in the first.
inline I16 shift_up(I16 a) {
  const __m256i before = _mm256_setr_epi32(7, 0, 1, 2, 3, 4, 5, 6);
  const __m256i lo = _mm256_permutevar8x32_epi32(a.lo, before);
  const __m256i hi = _mm256_permutevar8x32_epi32(a.hi, before);
  return {_mm256_blend_epi32(lo, _mm256_setzero_si256(), 1), _mm256_blend_epi32(hi, lo, 1)};
}
inline F16 bf16_low(I16 a) { return from_bits(shift_left<16>(a)); }
inline F16 bf16_high(I16 a) {
  const __m256i mask = _mm256_set1_epi32(static_cast<int>(0xFFFF0000U));
  return from_bits({_mm256_and_si256(a.lo, mask), _mm256_and_si256(a.hi, mask)});
}

template <int F>
inline I16 masked_field(I16 packed) {
  const __m256i mask = _mm256_set1_epi8(static_cast<char>(3 << (2 * F)));
  return {_mm256_and_si256(packed.lo, mask), _mm256_and_si256(packed.hi, mask)};
}
template <int F>
inline I16 codes(I16 packed) {
  const __m256i mask = _mm256_set1_epi8(3);
  return {_mm256_and_si256(_mm256_srli_epi32(packed.lo, 2 * F), mask),
          _mm256_and_si256(_mm256_srli_epi32(packed.hi, 2 * F), mask)};
}
inline __m256i add_sub_half(__m256i acc, __m256i code, __m256i x) {
  const __m256i one = _mm256_set1_epi8(1);
  // sign_epi8 keeps, clears or negates each byte of x: exactly the ternary product.
  const __m256i terms = _mm256_sign_epi8(x, _mm256_sub_epi8(code, one));
  const __m256i pairs = _mm256_maddubs_epi16(one, terms);
  return _mm256_add_epi32(acc, _mm256_madd_epi16(pairs, _mm256_set1_epi16(1)));
}
inline I16 add_sub(I16 acc, I16 code, I16 x) {
  return {add_sub_half(acc.lo, code.lo, x.lo), add_sub_half(acc.hi, code.hi, x.hi)};
}

inline void prefetch(const void* p) { _mm_prefetch(static_cast<const char*>(p), _MM_HINT_T0); }
inline float square_root(float x) { return _mm_cvtss_f32(_mm_sqrt_ss(_mm_set_ss(x))); }
inline float fma_one(float a, float b, float c) {
  return _mm_cvtss_f32(_mm_fmadd_ss(_mm_set_ss(a), _mm_set_ss(b), _mm_set_ss(c)));
}

inline float sum_lanes(F16 a) {
  const __m256 eight = _mm256_add_ps(a.lo, a.hi);
  const __m128 four = _mm_add_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
  const __m128 two = _mm_add_ps(four, _mm_movehl_ps(four, four));
  return _mm_cvtss_f32(_mm_add_ss(two, _mm_shuffle_ps(two, two, 1)));
}
inline float max_lanes(F16 a) {
  const __m256 eight = _mm256_max_ps(a.lo, a.hi);
  const __m128 four = _mm_max_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
  const __m128 two = _mm_max_ps(four, _mm_movehl_ps(four, four));
  return _mm_cvtss_f32(_mm_max_ss(two, _mm_shuffle_ps(two, two, 1)));
}
inline std::int32_t max_lanes(I16 a) {
  const __m256i eight = _mm256_max_epi32(a.lo, a.hi);
  const __m128i four =
      _mm_max_epi32(_mm256_castsi256_si128(eight), _mm256_extracti128_si256(eight, 1));
  const __m128i two = _mm_max_epi32(four, _mm_shuffle_epi32(four, 0x4E));
  return _mm_cvtsi128_si32(_mm_max_epi32(two, _mm_shuffle_epi32(two, 0xB1)));
}
inline F16 sum_lanes_of_16(const F16 (&a)[16]) {
  alignas(32) float sums[16];
  for (int i = 0; i < 16; ++i) {
    sums[i] = sum_lanes(a[i]);
  }
  return load(sums);
}

// --- The same lanes with 64 bits each ------------------------------------------------------------

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
