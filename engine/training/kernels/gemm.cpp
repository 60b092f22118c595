// Matrix products of the trainer: y = x B (bf16) and dw += dy^T x (f32).
//
// Weights are packed once per optimiser step into panels of 32 columns, [n/32][k/2][32][2], so that
// the inner loop reads one contiguous panel. All dimensions are multiples of 32.
#include <cstdlib>
#include <cstring>
#include <omp.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <vector>

#include "pack.hpp"

namespace spel_train {
namespace {

constexpr int kChunk = 512;  // rows of one weight-gradient pass; both operands stay in L2

bf16* scratch(int slot, std::size_t count) {
  static thread_local bf16* data[3] = {};
  static thread_local std::size_t size[3] = {};
  if (size[slot] < count) {
    std::free(data[slot]);
    data[slot] = static_cast<bf16*>(std::aligned_alloc(4096, (count * 2 + 4095) / 4096 * 4096));
    size[slot] = count;
  }
  return data[slot];
}

// 32 rows (16 pairs) by 16 columns of dy, transposed: out[n][32 rows].
void pack_transposed(const bf16* dy, std::size_t stride, bf16* out) {
  alignas(64) std::uint32_t pairs[16 * 16];
  for (int p = 0; p < 16; ++p) {
    _mm512_store_si512(pairs + p * 16, pair_rows(dy + 2 * p * stride, dy + (2 * p + 1) * stride));
  }
  transpose16(pairs, 16, out, kBlock / 2);
}

}  // namespace

extern "C" {

// 1 when tiles are used, 0 for AVX512_BF16; asks the kernel for the tile state once per process.
int kernels_init() {
  if (!kHasAmx) return 0;
  constexpr long kRequestPermission = 0x1023, kTileData = 18;  // ARCH_REQ_XCOMP_PERM
  return syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0 ? 1 : -1;
}

// w[n][k] -> panels of w^T: the operand of y = x w^T.
void pack_forward(const bf16* w, bf16* out, int n, int k) {
#pragma omp parallel for
  for (int j = 0; j < n; j += kBlock) {
    pack_forward_panel(w, out + static_cast<std::size_t>(j) * k, j, k);
  }
}

// w[n][k] -> panels of w: the operand of dx = dy w.
void pack_backward(const bf16* w, bf16* out, int n, int k) {
#pragma omp parallel for
  for (int j = 0; j < k; j += kBlock) {
    pack_backward_panel(w, out + static_cast<std::size_t>(j) * n, j, n, k);
  }
}

// y[m][n] = x[m][k] B, B packed.
void gemm(const bf16* x, const bf16* packed, bf16* y, int m, int k, int n) {
#pragma omp parallel
  {
    TileScope tiles;
    bf16* a = scratch(0, static_cast<std::size_t>(kBlock) * k);
#pragma omp for schedule(dynamic, 4)
    for (int i = 0; i < m; i += kBlock) {
      multiply_rows(x + static_cast<std::size_t>(i) * k, packed, k, n, a,
                    [&](int j, const float* c) {
                      for (int r = 0; r < kBlock; ++r) {
                        bf16* out = y + static_cast<std::size_t>(i + r) * n + j;
                        store_bf16(out, load(c + r * kBlock));
                        store_bf16(out + 16, load(c + r * kBlock + 16));
                      }
                    });
    }
  }
}

// dw[n][k] += dy[m][n]^T x[m][k].
void gemm_weight_grad(const bf16* dy, const bf16* x, float* dw, int m, int n, int k) {
  bf16* rows = scratch(1, static_cast<std::size_t>(n) * kChunk);
  bf16* panels = scratch(2, static_cast<std::size_t>(k) * kChunk);
#pragma omp parallel
  {
    TileScope tiles;
    for (int start = 0; start < m; start += kChunk) {
      const int size = m - start < kChunk ? m - start : kChunk;
#pragma omp for schedule(static) nowait
      for (int p = 0; p < size / kBlock; ++p) {
        const bf16* block = dy + static_cast<std::size_t>(start + p * kBlock) * n;
        for (int i = 0; i < n; i += 16) {
          bf16* tile = rows + static_cast<std::size_t>(i / kBlock) * kBlock * size + p * kTile;
          pack_transposed(block + i, n, tile + (i % kBlock) * kBlock);
        }
      }
#pragma omp for schedule(static)
      for (int p = 0; p < size / 2; ++p) {
        const bf16* row = x + static_cast<std::size_t>(start + 2 * p) * k;
        for (int j = 0; j < k; j += kBlock) {
          bf16* out = panels + static_cast<std::size_t>(j) * size + p * 2 * kBlock;
          _mm512_storeu_si512(out, pair_rows(row + j, row + k + j));
          _mm512_storeu_si512(out + kBlock, pair_rows(row + j + 16, row + k + j + 16));
        }
      }
#pragma omp for schedule(dynamic, 1)
      for (int i = 0; i < n; i += kBlock) {
        for (int j = 0; j < k; j += kBlock) {
          block_product(rows + static_cast<std::size_t>(i) * size, kBlock, 16 * kBlock, kTile,
                        panels + static_cast<std::size_t>(j) * size, 2 * kBlock,
                        dw + static_cast<std::size_t>(i) * k + j, k, size / kBlock, true);
        }
      }
    }
  }
}

}  // extern "C"
}  // namespace spel_train
