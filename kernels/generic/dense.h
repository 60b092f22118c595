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
    for (int p = 0; p < P; ++p) {
      acc[t][p] = fma(broadcast, w[p], acc[t][p]);
    }
  }
}

/// Sums of the words before `place.begin` wait in y: an f32 stored and loaded again is the same
/// f32.
template <int T, int P>
inline void load_tile(const DenseJob& job, const TilePlace& place, F16 (&acc)[T][P]) {
#pragma GCC unroll 8
  for (int p = 0; p < P; ++p) {
    const std::size_t panel = place.panel + static_cast<std::size_t>(p);
    const std::size_t lanes = place.begin > 0 ? panel_lanes(job.rows, panel) : 0;
    const float* y = job.y + place.row * job.y_stride + 16 * panel;
#pragma GCC unroll 16
    for (int t = 0; t < T; ++t, y += job.y_stride) {
      acc[t][p] = load_lanes(y, lanes);
    }
  }
}

template <int T, int P>
inline void store_tile(const DenseJob& job, const TilePlace& place, const F16 (&acc)[T][P]) {
#pragma GCC unroll 8
  for (int p = 0; p < P; ++p) {
    const std::size_t panel = place.panel + static_cast<std::size_t>(p);
    const std::size_t lanes = panel_lanes(job.rows, panel);
    float* y = job.y + place.row * job.y_stride + 16 * panel;
#pragma GCC unroll 16
    for (int t = 0; t < T; ++t, y += job.y_stride) {
      store_lanes(y, lanes, acc[t][p]);
    }
  }
}

/// Which lines a tile asks for while it works on its own, relative to the line it reads.
///
/// With one tile: kAhead lines further down each panel, and at its end, the first lines of the
/// panels of the next group. With several, which read the same lines: the next block of these
/// panels, or the first block of the next group, shared among the tiles.
template <int T, int P>
struct Prefetcher {
  static constexpr std::size_t kAhead = kPrefetchLines / P;

  Prefetcher(const DenseJob& job, const TilePlace& place, std::size_t lines_begin,
             std::size_t lines_end)
      : to_next_group((P - 1) * job.panel_bytes), within_panel(lines_end) {
    const std::size_t panel_lines = job.panel_bytes / 64;
    std::size_t ahead = 64 * kAhead;
    if (place.tiles == 1) {
      within_panel = lines_end > kAhead ? lines_end - kAhead : 0;
    } else {
      ahead = lines_end < panel_lines ? 64 * (lines_end - lines_begin)
                                      : P * job.panel_bytes - 64 * lines_begin;
    }
    std::size_t p = place.tile % P;
    for (int i = 0; i < P; ++i) {
      offset[i] = p * job.panel_bytes + ahead;
      p = p + place.tiles < P ? p + place.tiles : p;
    }
  }

  /// From line `within_panel` on, what lies ahead of a line of panel p is in panel p + 1: go on in
  /// panel p + P.
  void leave_panel() {
#pragma GCC unroll 8
    for (int i = 0; i < P; ++i) {
      offset[i] += to_next_group;
    }
  }

  void ask(const std::byte* line) const {
#pragma GCC unroll 8
    for (int i = 0; i < P; ++i) {
      prefetch(line + offset[i]);
    }
  }

  std::size_t offset[P];
  std::size_t to_next_group;
  std::size_t within_panel;
};

struct F32Tile {
  static constexpr int kRowsMin = 1;
  static constexpr int kRowsMax = kDenseTileRows;
  /// Three panels' blocks, with half as much again coming in, fit the nearest cache.
  static constexpr std::size_t kBlockWords = 128;
  static constexpr int panels(int rows) { return dense_panels(rows); }
  static std::size_t words(const DenseJob& job) { return job.cols; }

  template <int T, int P>
  static void run(const DenseJob& job, const TilePlace& place) {
    F16 acc[T][P];
    load_tile<T, P>(job, place, acc);
    const std::byte* base = job.panels + place.panel * job.panel_bytes;
    Prefetcher<T, P> prefetcher(job, place, place.begin, place.end);
    std::size_t k = place.begin;
    const std::size_t ends[] = {prefetcher.within_panel, place.end};
    for (const std::size_t end : ends) {
      for (; k < end; ++k) {
        const std::byte* line = base + 64 * k;
        prefetcher.ask(line);
        F16 w[P];
#pragma GCC unroll 8
        for (int p = 0; p < P; ++p) {
          w[p] = load(
              reinterpret_cast<const float*>(line + static_cast<std::size_t>(p) * job.panel_bytes));
        }
        fma_step<T, P>(acc, w, place.x + 4 * T * k);
      }
      prefetcher.leave_panel();
    }
    store_tile<T, P>(job, place, acc);
  }
};

/// Each 32-bit lane holds column 2j in its low half and column 2j+1 in its high half.
struct Bf16Tile {
  static constexpr int kRowsMin = 1;
  static constexpr int kRowsMax = kDenseTileRows;
  static constexpr std::size_t kBlockWords = 192;
  static_assert(kBlockWords % 2 == 0, "a block may not end inside a pair of columns");
  static constexpr int panels(int rows) { return dense_panels(rows); }
  static std::size_t words(const DenseJob& job) { return job.cols; }

  template <int P>
  static void load_pairs(I16 (&pairs)[P], const std::byte* line, std::size_t panel_bytes) {
#pragma GCC unroll 8
    for (int p = 0; p < P; ++p) {
      pairs[p] = load_words(line + static_cast<std::size_t>(p) * panel_bytes);
    }
  }

  template <int T, int P>
  static void step_low(F16 (&acc)[T][P], const I16 (&pairs)[P], const unsigned char* x) {
    F16 w[P];
#pragma GCC unroll 8
    for (int p = 0; p < P; ++p) {
      w[p] = bf16_low(pairs[p]);
    }
    fma_step<T, P>(acc, w, x);
  }

  template <int T, int P>
  static void run(const DenseJob& job, const TilePlace& place) {
    F16 acc[T][P];
    load_tile<T, P>(job, place, acc);
    const std::byte* base = job.panels + place.panel * job.panel_bytes;
    Prefetcher<T, P> prefetcher(job, place, place.begin / 2, (place.end + 1) / 2);
    I16 pairs[P];
    std::size_t j = place.begin / 2;
    const std::size_t pairs_end = place.end / 2;
    const std::size_t ends[] = {
        prefetcher.within_panel < pairs_end ? prefetcher.within_panel : pairs_end, pairs_end};
    for (const std::size_t end : ends) {
      for (; j < end; ++j) {
        const std::byte* line = base + 64 * j;
        prefetcher.ask(line);
        const unsigned char* x = place.x + 8 * T * j;
        load_pairs<P>(pairs, line, job.panel_bytes);
        step_low<T, P>(acc, pairs, x);
        F16 w[P];
#pragma GCC unroll 8
        for (int p = 0; p < P; ++p) {
          w[p] = bf16_high(pairs[p]);
        }
        fma_step<T, P>(acc, w, x + 4 * T);
      }
      prefetcher.leave_panel();
    }
    // The padding after an odd last column is not multiplied in: adding +0 would turn -0 into +0.
    if (place.end % 2 != 0) {
      load_pairs<P>(pairs, base + 64 * (place.end / 2), job.panel_bytes);
      step_low<T, P>(acc, pairs, place.x + 4 * T * (place.end - 1));
    }
    store_tile<T, P>(job, place, acc);
  }
};

inline std::size_t dense_panel_group(std::size_t m) {
  return static_cast<std::size_t>(
      dense_panels(static_cast<int>(plan_tiles(m, kDenseTileRows).rows_max)));
}
inline void matmul_f32(const DenseJob& job, std::size_t begin, std::size_t end) {
  run_job<F32Tile>(job, begin, end);
}
inline void matmul_bf16(const DenseJob& job, std::size_t begin, std::size_t end) {
  run_job<Bf16Tile>(job, begin, end);
}

}  // namespace
}  // namespace spel::kernels
