// Packing of operands for block_product, and the product of packed operands on one thread.
#pragma once

#include "tile.hpp"

namespace spel_train {

inline constexpr int kBlock = 32;
inline constexpr int kTile = kBlock * kBlock;

inline __m512i pair_rows(const bf16* even, const bf16* odd) {
  const auto row = [](const bf16* p) {
    return _mm512_cvtepu16_epi32(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)));
  };
  return _mm512_or_si512(row(even), _mm512_slli_epi32(row(odd), 16));
}

// 32 rows of x into tiles [k/32][32][32].
inline void pack_rows(const bf16* x, std::size_t stride, int k, bf16* out) {
  for (int j = 0; j < k; j += kBlock, out += kTile) {
    for (int i = 0; i < kBlock; ++i) {
      _mm512_storeu_si512(out + i * kBlock, _mm512_loadu_si512(x + i * stride + j));
    }
  }
}

// One panel (32 columns j of w^T) of w[n][k]: the operand of x w^T.
inline void pack_forward_panel(const bf16* w, bf16* panel, int j, int k) {
  for (int p = 0; p < k / 2; p += 16) {
    for (int half = 0; half < kBlock; half += 16) {
      transpose16(w + static_cast<std::size_t>(j + half) * k + 2 * p, k / 2,
                  panel + p * 2 * kBlock + 2 * half, kBlock);
    }
  }
}

// One panel (32 columns j of w) of w[n][k]: the operand of dy w.
inline void pack_backward_panel(const bf16* w, bf16* panel, int j, int n, int k) {
  for (int i = 0; i < n; i += 2) {
    const bf16* row = w + static_cast<std::size_t>(i) * k + j;
    _mm512_storeu_si512(panel + i * kBlock, pair_rows(row, row + k));
    _mm512_storeu_si512(panel + i * kBlock + kBlock, pair_rows(row + 16, row + k + 16));
  }
}

// 32 rows of x[.][k] times packed panels; `use(j, c)` gets the f32 block of columns j..j+31.
template <typename Use>
inline void multiply_rows(const bf16* x, const bf16* packed, int k, int n, bf16* tiles, Use use) {
  alignas(64) float c[kTile];
  pack_rows(x, k, k, tiles);
  for (int j = 0; j < n; j += kBlock) {
    block_product(tiles, kBlock, 16 * kBlock, kTile, packed + static_cast<std::size_t>(j) * k,
                  2 * kBlock, c, kBlock, k / kBlock, false);
    use(j, c);
  }
}

}  // namespace spel_train
