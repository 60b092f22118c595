// f32 and bf16 panel products: one chain of fused multiply-adds per output, k = 0 … cols-1 from +0.
#pragma once

#include "kernels/generic/tiling.h"

namespace spel::kernels {
namespace {

/// One step of T x P chains: acc[t][p] = x[t] * w[p] + acc[t][p].
template <int T, int P>
inline void fma_step(F16 (&acc)[T][P], const F16 (&w)[P], const unsigned char* x) {
#pragma GCC unroll 16
  for (int t = 0; t < T; ++t) {
    float value;
    __builtin_memcpy(&value, x + 4 * t, 4);
    const F16 broadcast = splat(value);
#pragma GCC unroll 8
    for (int p = 0; p < P; ++p) acc[t][p] = fma(broadcast, w[p], acc[t][p]);
  }
}

template <int T, int P>
inline void store_tile(const DenseJob& job, std::size_t panel, std::size_t row,
                       const F16 (&acc)[T][P]) {
#pragma GCC unroll 16
  for (int t = 0; t < T; ++t) {
    float* y = job.y + (row + static_cast<std::size_t>(t)) * job.y_stride;
#pragma GCC unroll 8
    for (int p = 0; p < P; ++p) {
      store_panel(y, job.rows, panel + static_cast<std::size_t>(p), acc[t][p]);
    }
  }
}

struct F32Tile {
  static constexpr int panels(int rows) { return dense_panels(rows); }
  static std::size_t words(const DenseJob& job) { return job.cols; }

  template <int T, int P>
  static void run(const DenseJob& job, std::size_t panel, const unsigned char* x, std::size_t row) {
    F16 acc[T][P];
#pragma GCC unroll 16
    for (int t = 0; t < T; ++t) {
#pragma GCC unroll 8
      for (int p = 0; p < P; ++p) acc[t][p] = splat(0.0F);
    }
    const std::byte* base = job.panels + panel * job.panel_bytes;
    for (std::size_t k = 0; k < job.cols; ++k) {
      F16 w[P];
#pragma GCC unroll 8
      for (int p = 0; p < P; ++p) {
        const std::byte* from = base + static_cast<std::size_t>(p) * job.panel_bytes + 64 * k;
        w[p] = load(reinterpret_cast<const float*>(from));
      }
      fma_step<T, P>(acc, w, x + 4 * T * k);
    }
    store_tile<T, P>(job, panel, row, acc);
  }
};

/// Each 32-bit lane holds column 2j in its low half and column 2j+1 in its high half.
struct Bf16Tile {
  static constexpr int panels(int rows) { return dense_panels(rows); }
  static std::size_t words(const DenseJob& job) { return job.cols; }

  template <int T, int P>
  static void run(const DenseJob& job, std::size_t panel, const unsigned char* x, std::size_t row) {
    F16 acc[T][P];
#pragma GCC unroll 16
    for (int t = 0; t < T; ++t) {
#pragma GCC unroll 8
      for (int p = 0; p < P; ++p) acc[t][p] = splat(0.0F);
    }
    const std::byte* base = job.panels + panel * job.panel_bytes;
    const std::size_t pairs = job.cols / 2;
    for (std::size_t j = 0; j < pairs; ++j) {
      F16 w[P];
#pragma GCC unroll 8
      for (int p = 0; p < P; ++p) {
        w[p] = bf16_low(load_words(base + static_cast<std::size_t>(p) * job.panel_bytes + 64 * j));
      }
      fma_step<T, P>(acc, w, x + 8 * T * j);
#pragma GCC unroll 8
      for (int p = 0; p < P; ++p) {
        w[p] = bf16_high(load_words(base + static_cast<std::size_t>(p) * job.panel_bytes + 64 * j));
      }
      fma_step<T, P>(acc, w, x + 8 * T * j + 4 * T);
    }
    // The padding after an odd last column is not multiplied in: adding +0 would turn -0 into +0.
    if (job.cols % 2 != 0) {
      F16 w[P];
#pragma GCC unroll 8
      for (int p = 0; p < P; ++p) {
        w[p] =
            bf16_low(load_words(base + static_cast<std::size_t>(p) * job.panel_bytes + 64 * pairs));
      }
      fma_step<T, P>(acc, w, x + 8 * T * pairs);
    }
    store_tile<T, P>(job, panel, row, acc);
  }
};

inline std::size_t dense_panel_group(std::size_t m) {
  return static_cast<std::size_t>(dense_panels(static_cast<int>(plan_tiles(m).rows_max)));
}
inline void matmul_f32(const DenseJob& job, std::size_t begin, std::size_t end) {
  run_job<F32Tile>(job, begin, end);
}
inline void matmul_bf16(const DenseJob& job, std::size_t begin, std::size_t end) {
  run_job<Bf16Tile>(job, begin, end);
}

}  // namespace
}  // namespace spel::kernels
