// Products of bf16 blocks with f32 accumulation, the one primitive behind every matrix kernel here.
//
//   C[32][32] (+)= A[32][k] * B[k][32]        k a multiple of 32
//
// A is row-major. B is "paired": row r holds, for every column, the values of k = 2r and 2r+1 next
// to each other, which is what both AMX tiles and AVX512_BF16 dot products want. With AMX the block
// is four 16x16 tiles; without, the same layout feeds _mm512_dpbf16_ps.
#pragma once

#include "simd.hpp"

namespace spel_train {

#if defined(__AMX_BF16__)

inline constexpr bool kHasAmx = true;

// Tile shapes are per thread and other libraries use tiles too: configure on entry, release on exit.
class TileScope {
 public:
  TileScope() {
    struct alignas(64) {
      std::uint8_t palette = 1, start_row = 0, reserved[14] = {};
      std::uint16_t row_bytes[16] = {64, 64, 64, 64, 64, 64, 64, 64};
      std::uint8_t rows[16] = {16, 16, 16, 16, 16, 16, 16, 16};
    } config;
    _tile_loadconfig(&config);
  }
  ~TileScope() { _tile_release(); }
  TileScope(const TileScope&) = delete;
  TileScope& operator=(const TileScope&) = delete;
};

// a_tile is the distance between the two 16-row halves of A; a_step the one between k blocks of 32.
inline void block_product(const bf16* a, std::size_t a_stride, std::size_t a_tile,
                          std::size_t a_step, const bf16* b, std::size_t b_stride, float* c,
                          std::size_t c_stride, int k_blocks, bool accumulate) {
  const std::size_t as = a_stride * 2, bs = b_stride * 2, cs = c_stride * 4;
  if (accumulate) {
    _tile_loadd(0, c, cs);
    _tile_loadd(1, c + 16, cs);
    _tile_loadd(2, c + 16 * c_stride, cs);
    _tile_loadd(3, c + 16 * c_stride + 16, cs);
  } else {
    _tile_zero(0);
    _tile_zero(1);
    _tile_zero(2);
    _tile_zero(3);
  }
  for (int k = 0; k < k_blocks; ++k, a += a_step, b += 16 * b_stride) {
    _tile_loadd(4, a, as);
    _tile_loadd(6, b, bs);
    _tile_loadd(5, a + a_tile, as);
    _tile_loadd(7, b + 32, bs);
    _tile_dpbf16ps(0, 4, 6);
    _tile_dpbf16ps(2, 5, 6);
    _tile_dpbf16ps(1, 4, 7);
    _tile_dpbf16ps(3, 5, 7);
  }
  _tile_stored(0, c, cs);
  _tile_stored(1, c + 16, cs);
  _tile_stored(2, c + 16 * c_stride, cs);
  _tile_stored(3, c + 16 * c_stride + 16, cs);
}

#else

inline constexpr bool kHasAmx = false;

struct TileScope {
  ~TileScope() {}
};

inline void block_product(const bf16* a, std::size_t a_stride, std::size_t a_tile,
                          std::size_t a_step, const bf16* b, std::size_t b_stride, float* c,
                          std::size_t c_stride, int k_blocks, bool accumulate) {
  // 8 rows by 32 columns at a time: ten loads feed sixteen dot products.
  constexpr int kRows = 8;
  for (int first = 0; first < 32; first += kRows, c += kRows * c_stride) {
    const bf16* rows = a + (first / 16) * a_tile + (first % 16) * a_stride;
    Vec left[kRows], right[kRows];
    for (int i = 0; i < kRows; ++i) {
      left[i] = accumulate ? load(c + i * c_stride) : splat(0.f);
      right[i] = accumulate ? load(c + i * c_stride + 16) : splat(0.f);
    }
    for (int k = 0; k < k_blocks; ++k) {
      const bf16* ak = rows + k * a_step;
      const bf16* bk = b + k * 16 * b_stride;
      for (int pair = 0; pair < 16; ++pair, bk += b_stride) {
        const auto b_left = (__m512bh)_mm512_loadu_si512(bk);
        const auto b_right = (__m512bh)_mm512_loadu_si512(bk + 32);
#pragma GCC unroll 8
        for (int i = 0; i < kRows; ++i) {
          std::int32_t both;
          __builtin_memcpy(&both, ak + i * a_stride + 2 * pair, 4);
          const auto value = (__m512bh)_mm512_set1_epi32(both);
          left[i] = _mm512_dpbf16_ps(left[i], value, b_left);
          right[i] = _mm512_dpbf16_ps(right[i], value, b_right);
        }
      }
    }
    for (int i = 0; i < kRows; ++i) {
      store(c + i * c_stride, left[i]);
      store(c + i * c_stride + 16, right[i]);
    }
  }
}

#endif

// --- 64x64 matrices, the chunk of the recurrent layer and the block of attention ---

using Mat = float[64 * 64];
using MatB = bf16[64 * 64];  // as rows (operand A) or paired (operand B)

// C (+)= A B for 64x64 operands; A as rows, B paired.
inline void mat_mul(const bf16* a, const bf16* b, float* c, bool accumulate) {
  for (int i = 0; i < 64; i += 32) {
    for (int j = 0; j < 64; j += 32) {
      block_product(a + i * 64, 64, 16 * 64, 32, b + 2 * j, 128, c + i * 64 + j, 64, 2, accumulate);
    }
  }
}

// Rows as bf16, row i times scale[i] (or unscaled).
inline void as_rows(const float* src, bf16* dst, const float* scale = nullptr) {
  for (int i = 0; i < 64; ++i) {
    const Vec s = splat(scale ? scale[i] : 1.f);
    for (int j = 0; j < 64; j += 16) store_bf16(dst + i * 64 + j, _mm512_mul_ps(load(src + i * 64 + j), s));
  }
}

// The same matrix as a paired operand B.
inline void as_paired(const float* src, bf16* dst, const float* scale = nullptr) {
  for (int i = 0; i < 64; i += 2) {
    const Vec s = splat(scale ? scale[i] : 1.f), t = splat(scale ? scale[i + 1] : 1.f);
    for (int j = 0; j < 64; j += 16) {
      const __m512i both = pair_bf16(_mm512_mul_ps(load(src + i * 64 + j), s),
                                     _mm512_mul_ps(load(src + (i + 1) * 64 + j), t));
      _mm512_storeu_si512(dst + i * 64 + 2 * j, both);
    }
  }
}

// Rows [64][32 pairs] -> the transpose as a paired operand [32 pairs][64], and back.
inline void rows_to_paired_transpose(const bf16* rows, bf16* dst) {
  for (int i = 0; i < 64; i += 16) {
    for (int p = 0; p < 32; p += 16) transpose16(rows + i * 64 + 2 * p, 32, dst + p * 128 + 2 * i, 64);
  }
}

inline void paired_to_rows_transpose(const bf16* paired, bf16* dst) {
  for (int p = 0; p < 32; p += 16) {
    for (int i = 0; i < 64; i += 16) transpose16(paired + p * 128 + 2 * i, 64, dst + i * 64 + 2 * p, 32);
  }
}

}  // namespace spel_train
