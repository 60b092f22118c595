// The 16 virtual lanes as one AVX-512 register. Included by avx512.cpp alone.
#pragma once

#include <cstddef>
#include <cstdint>
#include <immintrin.h>

namespace spel::kernels {
namespace {

struct F16 {
  __m512 v;
};
struct I16 {
  __m512i v;
};

constexpr int kDenseTileRows = 9;
/// Lines a product asks for ahead of the one it reads, over all its panels: latency x bandwidth.
constexpr std::size_t kPrefetchLines = 128;
/// Panels taken at once with `rows` activation rows: rows x panels accumulators, the panels'
/// weights and one broadcast fit 32 registers, and the models' widths are whole multiples.
constexpr int dense_panels(int rows) { return rows <= 2 ? 8 : rows <= 6 ? 4 : 3; }
/// Ternary fields are masked in place up to this many rows (four accumulators each), else shifted.
constexpr int kMaskedFieldRows = 6;
constexpr int masked_field_panels(int rows) { return rows == 1 ? 4 : rows == 2 ? 2 : 1; }
/// Shifting a field down is paid once per tile: tall tiles, of ten sums or more to hide the
/// latency.
constexpr int kTernaryTileRows = 12;
constexpr int shifted_field_panels(int) { return 2; }
/// Whether dot_weights() sums (w + 128) x rather than w x.
constexpr bool kInt8Biased = true;
/// masked_field<F> leaves codes times 2^kFieldShift[F]: the field is not shifted down.
constexpr int kFieldShift[4] = {0, 2, 4, 6};
/// Panels of keys, or vectors of a value, that attention takes at once for this many queries:
/// queries x vectors sums, the vectors and one broadcast fit the registers.
constexpr int attention_vectors(int queries) { return queries <= 2 ? 8 : 4; }

inline __mmask16 lane_mask(std::size_t n) { return static_cast<__mmask16>((1U << n) - 1U); }

inline F16 load(const float* p) { return {_mm512_loadu_ps(p)}; }
inline void store(float* p, F16 a) { _mm512_storeu_ps(p, a.v); }
/// To memory past the caches; p at the start of a line. Other threads see it after
/// end_streamed_stores().
inline void store_streamed(float* p, F16 a) { _mm512_stream_ps(p, a.v); }
inline void end_streamed_stores() { _mm_sfence(); }
/// Loads n < 16 lanes, the rest +0.
inline F16 load_partial(const float* p, std::size_t n) {
  return {_mm512_maskz_loadu_ps(lane_mask(n), p)};
}
inline void store_partial(float* p, std::size_t n, F16 a) {
  _mm512_mask_storeu_ps(p, lane_mask(n), a.v);
}
/// load_partial and store_partial for n <= 16, n = 16 being usual.
inline F16 load_lanes(const float* p, std::size_t n) { return load_partial(p, n); }
inline void store_lanes(float* p, std::size_t n, F16 a) { store_partial(p, n, a); }
inline F16 splat(float x) { return {_mm512_set1_ps(x)}; }
inline F16 add(F16 a, F16 b) { return {_mm512_add_ps(a.v, b.v)}; }
inline F16 sub(F16 a, F16 b) { return {_mm512_sub_ps(a.v, b.v)}; }
inline F16 mul(F16 a, F16 b) { return {_mm512_mul_ps(a.v, b.v)}; }
inline F16 div(F16 a, F16 b) { return {_mm512_div_ps(a.v, b.v)}; }
inline F16 fma(F16 a, F16 b, F16 c) { return {_mm512_fmadd_ps(a.v, b.v, c.v)}; }
/// a > b ? a : b, so a NaN in either place gives b.
inline F16 max(F16 a, F16 b) { return {_mm512_max_ps(a.v, b.v)}; }
/// a < b ? a : b
inline F16 min(F16 a, F16 b) { return {_mm512_min_ps(a.v, b.v)}; }
inline F16 abs(F16 a) { return {_mm512_abs_ps(a.v)}; }
/// Lanes l and l+1 exchanged, l even.
inline F16 swap_pairs(F16 a) { return {_mm512_permute_ps(a.v, 0xB1)}; }
/// p[0], p[0], p[1], p[1], … p[7], p[7]
inline F16 load_doubled(const float* p) {
  const __m512i index = _mm512_set_epi32(7, 7, 6, 6, 5, 5, 4, 4, 3, 3, 2, 2, 1, 1, 0, 0);
  return {_mm512_permutexvar_ps(index, _mm512_castps256_ps512(_mm256_loadu_ps(p)))};
}
inline F16 negate_even(F16 a) {
  const __m512i sign = _mm512_set1_epi64(0x80000000LL);
  return {_mm512_castsi512_ps(_mm512_xor_si512(_mm512_castps_si512(a.v), sign))};
}

inline I16 bits(F16 a) { return {_mm512_castps_si512(a.v)}; }
inline F16 from_bits(I16 a) { return {_mm512_castsi512_ps(a.v)}; }
inline I16 load_words(const void* p) { return {_mm512_loadu_si512(p)}; }
inline I16 splat_word(std::int32_t x) { return {_mm512_set1_epi32(x)}; }
inline I16 add(I16 a, I16 b) { return {_mm512_add_epi32(a.v, b.v)}; }
inline I16 sub(I16 a, I16 b) { return {_mm512_sub_epi32(a.v, b.v)}; }
template <int N>
inline I16 shift_left(I16 a) {
  return {_mm512_slli_epi32(a.v, N)};
}
template <int N>
inline I16 shift_right_signed(I16 a) {
  return {_mm512_srai_epi32(a.v, N)};
}
inline F16 to_float(I16 a) { return {_mm512_cvtepi32_ps(a.v)}; }
/// Nearest integer, halves to even; |a| < 2^22. Keeps the low byte of each lane.
inline void store_rounded_int8(std::int8_t* q, F16 a) {
  _mm_storeu_si128(reinterpret_cast<__m128i*>(q), _mm512_cvtepi32_epi8(_mm512_cvtps_epi32(a.v)));
}

inline F16 load_bf16(const std::uint16_t* p) {
  const __m256i halves = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p));
  return {_mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(halves), 16))};
}
/// The lane before, 0 in the first.
inline I16 shift_up(I16 a) { return {_mm512_alignr_epi32(a.v, _mm512_setzero_si512(), 15)}; }
/// The lower and the upper bf16 of each 32-bit lane.
inline F16 bf16_low(I16 a) { return {_mm512_castsi512_ps(_mm512_slli_epi32(a.v, 16))}; }
inline F16 bf16_high(I16 a) {
  const __m512i mask = _mm512_set1_epi32(static_cast<int>(0xFFFF0000U));
  return {_mm512_castsi512_ps(_mm512_and_si512(a.v, mask))};
}

/// Per lane, acc + sum of four u8 x s8 products. GCC 12 surrounds the intrinsic with two register
/// copies (its vector type is not the instruction's), which costs a third of the throughput.
inline I16 dot_bytes(I16 acc, I16 u, I16 s) {
  asm("vpdpbusd %2, %1, %0" : "+v"(acc.v) : "v"(u.v), "v"(s.v));
  return acc;
}
inline I16 dot_weights(I16 acc, I16 w, I16 x) { return dot_bytes(acc, w, x); }
/// The codes of field F times 2^kFieldShift[F], as bytes.
template <int F>
inline I16 masked_field(I16 packed) {
  return {_mm512_and_si512(packed.v, _mm512_set1_epi8(static_cast<char>(3 << (2 * F))))};
}
/// Codes of field F as bytes 0, 1, 2.
template <int F>
inline I16 codes(I16 packed) {
  return {_mm512_and_si512(_mm512_srli_epi32(packed.v, 2 * F), _mm512_set1_epi8(3))};
}
/// Adds x where the code is 2, subtracts it where it is 0.
inline I16 add_sub(I16 acc, I16 code, I16 x) {
  const __m512i zero = _mm512_setzero_si512();
  const __mmask64 plus = _mm512_cmpeq_epi8_mask(code.v, _mm512_set1_epi8(2));
  const __mmask64 minus = _mm512_cmpeq_epi8_mask(code.v, zero);
  const __m512i kept = _mm512_maskz_mov_epi8(plus, x.v);
  const __m512i terms = _mm512_mask_sub_epi8(kept, minus, zero, x.v);
  const __m512i pairs = _mm512_maddubs_epi16(_mm512_set1_epi8(1), terms);
  return {_mm512_add_epi32(acc.v, _mm512_madd_epi16(pairs, _mm512_set1_epi16(1)))};
}

/// Rows become columns: lane r of a[w] is lane w of the old a[r].
inline void transpose(__m512i (&a)[16]) {
  __m512i pairs[16];
#pragma GCC unroll 8
  for (int i = 0; i < 16; i += 2) {
    pairs[i] = _mm512_unpacklo_epi32(a[i], a[i + 1]);
    pairs[i + 1] = _mm512_unpackhi_epi32(a[i], a[i + 1]);
  }
  // Quarter q of fours[4 g + c] is column 4 q + c of rows 4 g … 4 g + 3.
  __m512i fours[16];
#pragma GCC unroll 4
  for (int g = 0; g < 16; g += 4) {
    fours[g] = _mm512_unpacklo_epi64(pairs[g], pairs[g + 2]);
    fours[g + 1] = _mm512_unpackhi_epi64(pairs[g], pairs[g + 2]);
    fours[g + 2] = _mm512_unpacklo_epi64(pairs[g + 1], pairs[g + 3]);
    fours[g + 3] = _mm512_unpackhi_epi64(pairs[g + 1], pairs[g + 3]);
  }
#pragma GCC unroll 4
  for (int c = 0; c < 4; ++c) {
    const __m512i even_low = _mm512_shuffle_i32x4(fours[c], fours[4 + c], 0x88);
    const __m512i even_high = _mm512_shuffle_i32x4(fours[8 + c], fours[12 + c], 0x88);
    const __m512i odd_low = _mm512_shuffle_i32x4(fours[c], fours[4 + c], 0xDD);
    const __m512i odd_high = _mm512_shuffle_i32x4(fours[8 + c], fours[12 + c], 0xDD);
    a[c] = _mm512_shuffle_i32x4(even_low, even_high, 0x88);
    a[4 + c] = _mm512_shuffle_i32x4(odd_low, odd_high, 0x88);
    a[8 + c] = _mm512_shuffle_i32x4(even_low, even_high, 0xDD);
    a[12 + c] = _mm512_shuffle_i32x4(odd_low, odd_high, 0xDD);
  }
}

/// out[word][row] = in[row][word] for `words` words of `rows` <= 16 rows `stride` bytes apart; the
/// rows of one word are `pitch` words from those of the next.
inline void interleave_words(const unsigned char* in, std::size_t stride, std::size_t rows,
                             std::size_t words, std::size_t pitch, unsigned char* out) {
  const __mmask16 row_mask = static_cast<__mmask16>((1U << rows) - 1U);
  for (std::size_t first = 0; first < words; first += 16) {
    const std::size_t count = words - first < 16 ? words - first : 16;
    const __mmask16 word_mask = static_cast<__mmask16>((1U << count) - 1U);
    __m512i block[16];
#pragma GCC unroll 16
    for (std::size_t row = 0; row < 16; ++row) {
      // Rows past the last read the first one under an empty mask: masked loads from pages that may
      // not exist do not fault, but cost a microcode assist each.
      const bool exists = row < rows;
      block[row] = _mm512_maskz_loadu_epi32(exists ? word_mask : __mmask16{0},
                                            in + (exists ? row : 0) * stride + 4 * first);
    }
    transpose(block);
    for (std::size_t word = 0; word < count; ++word) {
      _mm512_mask_storeu_epi32(out + 4 * (first + word) * pitch, row_mask, block[word]);
    }
  }
}

inline void prefetch(const void* p) { _mm_prefetch(static_cast<const char*>(p), _MM_HINT_T0); }
inline float square_root(float x) { return _mm_cvtss_f32(_mm_sqrt_ss(_mm_set_ss(x))); }
inline float fma_one(float a, float b, float c) {
  return _mm_cvtss_f32(_mm_fmadd_ss(_mm_set_ss(a), _mm_set_ss(b), _mm_set_ss(c)));
}

/// The fixed tree: lanes l and l+8, then l+4, l+2, l+1.
inline float sum_lanes(F16 a) {
  const __m256 eight = _mm256_add_ps(_mm512_castps512_ps256(a.v), _mm512_extractf32x8_ps(a.v, 1));
  const __m128 four = _mm_add_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
  const __m128 two = _mm_add_ps(four, _mm_movehl_ps(four, four));
  return _mm_cvtss_f32(_mm_add_ss(two, _mm_shuffle_ps(two, two, 1)));
}
inline float max_lanes(F16 a) {
  const __m256 eight = _mm256_max_ps(_mm512_castps512_ps256(a.v), _mm512_extractf32x8_ps(a.v, 1));
  const __m128 four = _mm_max_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
  const __m128 two = _mm_max_ps(four, _mm_movehl_ps(four, four));
  return _mm_cvtss_f32(_mm_max_ss(two, _mm_shuffle_ps(two, two, 1)));
}

inline std::int32_t max_lanes(I16 a) {
  const __m256i eight =
      _mm256_max_epi32(_mm512_castsi512_si256(a.v), _mm512_extracti32x8_epi32(a.v, 1));
  const __m128i four =
      _mm_max_epi32(_mm256_castsi256_si128(eight), _mm256_extracti128_si256(eight, 1));
  const __m128i two = _mm_max_epi32(four, _mm_shuffle_epi32(four, 0x4E));
  return _mm_cvtsi128_si32(_mm_max_epi32(two, _mm_shuffle_epi32(two, 0xB1)));
}

/// sum_lanes of sixteen vectors at once, the result of a[r] in lane r: the same tree, with the
/// vectors of each level merged before they are added.
inline F16 sum_lanes_of_16(const F16 (&a)[16]) {
  __m512 t8[8];
#pragma GCC unroll 8
  for (int i = 0; i < 8; ++i) {
    t8[i] = _mm512_add_ps(_mm512_shuffle_f32x4(a[i].v, a[i + 8].v, 0x44),
                          _mm512_shuffle_f32x4(a[i].v, a[i + 8].v, 0xEE));
  }
  __m512 t4[4];
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i) {
    t4[i] = _mm512_add_ps(_mm512_shuffle_f32x4(t8[i], t8[i + 4], 0x88),
                          _mm512_shuffle_f32x4(t8[i], t8[i + 4], 0xDD));
  }
  __m512 t2[2];
#pragma GCC unroll 2
  for (int i = 0; i < 2; ++i) {
    const __m512d lo = _mm512_castps_pd(t4[i]);
    const __m512d hi = _mm512_castps_pd(t4[i + 2]);
    t2[i] = _mm512_add_ps(_mm512_castpd_ps(_mm512_unpacklo_pd(lo, hi)),
                          _mm512_castpd_ps(_mm512_unpackhi_pd(lo, hi)));
  }
  const __m512 sums =
      _mm512_add_ps(_mm512_shuffle_ps(t2[0], t2[1], 0x88), _mm512_shuffle_ps(t2[0], t2[1], 0xDD));
  const __m512i order = _mm512_set_epi32(15, 13, 14, 12, 7, 5, 6, 4, 11, 9, 10, 8, 3, 1, 2, 0);
  return {_mm512_permutexvar_ps(order, sums)};
}

// --- The same lanes with 64 bits each ------------------------------------------------------------

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
