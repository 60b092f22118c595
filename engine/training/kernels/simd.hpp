// AVX-512 building blocks shared by the training kernels: bf16 <-> f32, exp, 16x16 transposes.
//
// The trainer's kernels are about speed on a CPU, not about equal bits: they are built with
// -ffast-math and their results are compared with a float64 reference within a tolerance. The
// server's kernels (../../../kernels) follow other rules and share nothing with these.
#pragma once

#include <immintrin.h>

#include <cstddef>
#include <cstdint>

#if !defined(__AVX512F__) || !defined(__AVX512BF16__) || !defined(__AVX512BW__)
#error "these kernels need a CPU with AVX-512 and AVX512_BF16 (Zen 4, Sapphire Rapids or later)"
#endif

namespace spel_train {

using bf16 = std::uint16_t;
using Vec = __m512;

inline Vec splat(float x) { return _mm512_set1_ps(x); }
inline Vec load(const float* p) { return _mm512_loadu_ps(p); }
inline void store(float* p, Vec v) { _mm512_storeu_ps(p, v); }
inline Vec fma(Vec a, Vec b, Vec c) { return _mm512_fmadd_ps(a, b, c); }

inline Vec load_bf16(const bf16* p) {
  const __m256i bits = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p));
  return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(bits), 16));
}

inline __m256i to_bf16(Vec v) { return (__m256i)_mm512_cvtneps_pbh(v); }

inline void store_bf16(bf16* p, Vec v) {
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), to_bf16(v));
}

// Low halves from `even`, high halves from `odd`: one row of a paired operand (see tile.hpp).
inline __m512i pair_bf16(Vec even, Vec odd) {
  const __m512i low = _mm512_cvtepu16_epi32(to_bf16(even));
  const __m512i high = _mm512_slli_epi32(_mm512_cvtepu16_epi32(to_bf16(odd)), 16);
  return _mm512_or_si512(low, high);
}

inline Vec exp_ps(Vec x) {
  x = _mm512_min_ps(_mm512_max_ps(x, splat(-87.f)), splat(87.f));
  const Vec y = _mm512_mul_ps(x, splat(1.44269504089f));
  const Vec n = _mm512_roundscale_ps(y, 0);
  const Vec f = _mm512_sub_ps(y, n);
  Vec p = splat(1.3333558e-3f);
  p = fma(p, f, splat(9.6181291e-3f));
  p = fma(p, f, splat(5.5504109e-2f));
  p = fma(p, f, splat(2.4022651e-1f));
  p = fma(p, f, splat(6.9314718e-1f));
  p = fma(p, f, splat(1.f));
  return _mm512_scalef_ps(p, n);
}

inline Vec sigmoid_ps(Vec x) {
  return _mm512_div_ps(splat(1.f), _mm512_add_ps(splat(1.f), exp_ps(_mm512_sub_ps(splat(0.f), x))));
}

// dst[j][i] = src[i][j] for 16x16 elements of 32 bits; strides in elements.
inline void transpose16(const void* src, std::size_t src_stride, void* dst, std::size_t dst_stride) {
  const float* a = static_cast<const float*>(src);
  float* b = static_cast<float*>(dst);
  Vec r[16], t[16];
  for (int i = 0; i < 16; ++i) r[i] = load(a + i * src_stride);
  for (int i = 0; i < 8; ++i) {
    t[2 * i] = _mm512_unpacklo_ps(r[2 * i], r[2 * i + 1]);
    t[2 * i + 1] = _mm512_unpackhi_ps(r[2 * i], r[2 * i + 1]);
  }
  const auto low = [](Vec x, Vec y) {
    return _mm512_castpd_ps(_mm512_unpacklo_pd(_mm512_castps_pd(x), _mm512_castps_pd(y)));
  };
  const auto high = [](Vec x, Vec y) {
    return _mm512_castpd_ps(_mm512_unpackhi_pd(_mm512_castps_pd(x), _mm512_castps_pd(y)));
  };
  for (int i = 0; i < 4; ++i) {
    r[4 * i] = low(t[4 * i], t[4 * i + 2]);
    r[4 * i + 1] = high(t[4 * i], t[4 * i + 2]);
    r[4 * i + 2] = low(t[4 * i + 1], t[4 * i + 3]);
    r[4 * i + 3] = high(t[4 * i + 1], t[4 * i + 3]);
  }
  for (int i = 0; i < 4; ++i) {
    t[i] = _mm512_shuffle_f32x4(r[i], r[4 + i], 0x88);
    t[4 + i] = _mm512_shuffle_f32x4(r[i], r[4 + i], 0xdd);
    t[8 + i] = _mm512_shuffle_f32x4(r[8 + i], r[12 + i], 0x88);
    t[12 + i] = _mm512_shuffle_f32x4(r[8 + i], r[12 + i], 0xdd);
  }
  for (int i = 0; i < 4; ++i) {
    store(b + i * dst_stride, _mm512_shuffle_f32x4(t[i], t[8 + i], 0x88));
    store(b + (8 + i) * dst_stride, _mm512_shuffle_f32x4(t[i], t[8 + i], 0xdd));
    store(b + (4 + i) * dst_stride, _mm512_shuffle_f32x4(t[4 + i], t[12 + i], 0x88));
    store(b + (12 + i) * dst_stride, _mm512_shuffle_f32x4(t[4 + i], t[12 + i], 0xdd));
  }
}

// Rows of one head: 64 values.
inline constexpr int kHead = 64;

inline float dot_row(const float* a, const float* b) {
  Vec s = _mm512_mul_ps(load(a), load(b));
  Vec t = _mm512_mul_ps(load(a + 16), load(b + 16));
  s = fma(load(a + 32), load(b + 32), s);
  t = fma(load(a + 48), load(b + 48), t);
  return _mm512_reduce_add_ps(_mm512_add_ps(s, t));
}

inline void scale_row(float* out, const float* a, float s) {
  const Vec v = splat(s);
  for (int j = 0; j < kHead; j += 16) store(out + j, _mm512_mul_ps(v, load(a + j)));
}

inline void add_scaled_row(float* out, const float* a, float s) {
  const Vec v = splat(s);
  for (int j = 0; j < kHead; j += 16) store(out + j, fma(v, load(a + j), load(out + j)));
}

inline void load_row(const bf16* p, float* out) {
  for (int j = 0; j < kHead; j += 16) store(out + j, load_bf16(p + j));
}

inline void store_row(bf16* p, const float* a) {
  for (int j = 0; j < kHead; j += 16) store_bf16(p + j, load(a + j));
}

// out = scale * p / sqrt(|p|^2 + 1e-6); returns the factor without `scale`.
inline float load_unit_row(const bf16* p, float* out, float scale) {
  load_row(p, out);
  const float inverse = 1.f / __builtin_sqrtf(dot_row(out, out) + 1e-6f);
  scale_row(out, out, inverse * scale);
  return inverse;
}

// Gradient through load_unit_row: unit_scaled = scale * unit, grad is with respect to it.
inline void unit_row_backward(const float* unit_scaled, float scale, const float* grad,
                              float inverse, bf16* out) {
  const Vec along = splat(dot_row(unit_scaled, grad) / (scale * scale));
  const Vec factor = splat(inverse * scale);
  for (int j = 0; j < kHead; j += 16) {
    const Vec tangent = _mm512_fnmadd_ps(load(unit_scaled + j), along, load(grad + j));
    store_bf16(out + j, _mm512_mul_ps(tangent, factor));
  }
}

}  // namespace spel_train
