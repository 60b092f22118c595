// The Muon optimiser step: momentum, orthogonalised by five quintic Newton-Schulz iterations in
// bf16.
//
// One thread handles one matrix, whose working set stays in its L2 cache.
#include <cmath>
#include <omp.h>
#include <vector>

#include "pack.hpp"

namespace spel_train {
namespace {

constexpr int kIterations = 5;
constexpr float kA = 3.4445f, kB = -4.7750f, kC = 2.0315f;

struct Buffers {
  std::vector<bf16> x, next, packed, gram, poly, tiles;
  std::vector<float> update;
  explicit Buffers(std::size_t n, std::size_t side, std::size_t most)
      : x(n),
        next(n),
        packed(n > side * side ? n : side * side),
        gram(side * side),
        poly(side * side),
        tiles(kBlock * most),
        update(n) {}
};

void store_block(bf16* to, std::size_t stride, const float* c) {
  for (int r = 0; r < kBlock; ++r) {
    store_bf16(to + r * stride, load(c + r * kBlock));
    store_bf16(to + r * stride + 16, load(c + r * kBlock + 16));
  }
}

// to = factor * from + c, a 32x32 block.
void combine_block(bf16* to, const bf16* from, std::size_t stride, float factor, float times,
                   const float* c) {
  const Vec f = splat(factor), t = splat(times);
  for (int r = 0; r < kBlock; ++r) {
    for (int j = 0; j < kBlock; j += 16) {
      const Vec v =
          fma(f, load_bf16(from + r * stride + j), _mm512_mul_ps(t, load(c + r * kBlock + j)));
      store_bf16(to + r * stride + j, v);
    }
  }
}

// x[rows][cols], rows <= cols, of Frobenius norm at most 1: towards the nearest orthogonal matrix.
void orthogonalise(Buffers& b, int rows, int cols) {
  for (int step = 0; step < kIterations; ++step) {
    for (int j = 0; j < rows; j += kBlock) {
      pack_forward_panel(b.x.data(), b.packed.data() + static_cast<std::size_t>(j) * cols, j, cols);
    }
    for (int i = 0; i < rows; i += kBlock) {
      multiply_rows(b.x.data() + static_cast<std::size_t>(i) * cols, b.packed.data(), cols, rows,
                    b.tiles.data(), [&](int j, const float* c) {
                      store_block(b.gram.data() + static_cast<std::size_t>(i) * rows + j, rows, c);
                    });
    }
    for (int j = 0; j < rows; j += kBlock) {  // the Gram matrix is symmetric
      pack_backward_panel(b.gram.data(), b.packed.data() + static_cast<std::size_t>(j) * rows, j,
                          rows, rows);
    }
    for (int i = 0; i < rows; i += kBlock) {
      const std::size_t at = static_cast<std::size_t>(i) * rows;
      multiply_rows(b.gram.data() + at, b.packed.data(), rows, rows, b.tiles.data(),
                    [&](int j, const float* c) {
                      combine_block(b.poly.data() + at + j, b.gram.data() + at + j, rows, kB, kC,
                                    c);
                    });
    }
    for (int j = 0; j < cols; j += kBlock) {
      pack_backward_panel(b.x.data(), b.packed.data() + static_cast<std::size_t>(j) * rows, j, rows,
                          cols);
    }
    for (int i = 0; i < rows; i += kBlock) {
      const std::size_t at = static_cast<std::size_t>(i) * cols;
      multiply_rows(b.poly.data() + static_cast<std::size_t>(i) * rows, b.packed.data(), rows, cols,
                    b.tiles.data(), [&](int j, const float* c) {
                      combine_block(b.next.data() + at + j, b.x.data() + at + j, cols, kA, 1.f, c);
                    });
    }
    b.x.swap(b.next);
  }
}

}  // namespace

extern "C" {

// One step for `count` matrices at `offset[i]` of the flat buffers. The gradient is scaled by
// `grad_scale` (clipping) and set to zero.
void muon_step(float* weight, float* grad, float* momentum, const std::int64_t* offset,
               const std::int32_t* rows, const std::int32_t* cols, int count, float grad_scale,
               float beta, float lr, float weight_decay) {
#pragma omp parallel
  {
    TileScope tiles;
#pragma omp for schedule(dynamic, 1)
    for (int m = 0; m < count; ++m) {
      const std::size_t n = static_cast<std::size_t>(rows[m]) * cols[m];
      const bool flip = rows[m] > cols[m];
      const int r = flip ? cols[m] : rows[m], c = flip ? rows[m] : cols[m];
      Buffers b(n, r, c);
      float *w = weight + offset[m], *g = grad + offset[m], *mom = momentum + offset[m];
      Vec norm = splat(0.f);
      for (std::size_t i = 0; i < n; i += 16) {
        const Vec gi = _mm512_mul_ps(load(g + i), splat(grad_scale * (1.f - beta)));
        const Vec mi = fma(load(mom + i), splat(beta), gi);
        const Vec u = fma(mi, splat(beta), gi);
        store(mom + i, mi);
        store(b.update.data() + i, u);
        store(g + i, splat(0.f));
        norm = fma(u, u, norm);
      }
      const Vec inverse = splat(1.f / (std::sqrt(_mm512_reduce_add_ps(norm)) + 1e-12f));
      for (std::size_t i = 0; i < n; i += 16)
        store(b.update.data() + i, _mm512_mul_ps(load(b.update.data() + i), inverse));
      if (flip) {
        alignas(64) float t[256];
        for (int i = 0; i < r; i += 16) {
          for (int j = 0; j < c; j += 16) {
            transpose16(b.update.data() + static_cast<std::size_t>(j) * r + i, r, t, 16);
            for (int k = 0; k < 16; ++k)
              store_bf16(b.x.data() + static_cast<std::size_t>(i + k) * c + j, load(t + k * 16));
          }
        }
      } else {
        for (std::size_t i = 0; i < n; i += 16)
          store_bf16(b.x.data() + i, load(b.update.data() + i));
      }
      orthogonalise(b, r, c);
      const float ratio = static_cast<float>(rows[m]) / cols[m];
      const Vec step = splat(-lr * std::sqrt(ratio > 1.f ? ratio : 1.f)),
                keep = splat(1.f - lr * weight_decay);
      if (flip) {
        alignas(64) float t[256], back[256];
        for (int i = 0; i < r; i += 16) {
          for (int j = 0; j < c; j += 16) {
            for (int k = 0; k < 16; ++k)
              store(t + k * 16, load_bf16(b.x.data() + static_cast<std::size_t>(i + k) * c + j));
            transpose16(t, 16, back, 16);
            for (int k = 0; k < 16; ++k) {
              float* to = w + static_cast<std::size_t>(j + k) * r + i;
              store(to, fma(load(back + k * 16), step, _mm512_mul_ps(load(to), keep)));
            }
          }
        }
      } else {
        for (std::size_t i = 0; i < n; i += 16)
          store(w + i, fma(load_bf16(b.x.data() + i), step, _mm512_mul_ps(load(w + i), keep)));
      }
    }
  }
}

}  // extern "C"
}  // namespace spel_train
