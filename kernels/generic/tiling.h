// How a product is cut into register tiles: rows of activations x panels of weights.
//
// The cut decides speed only. Every output element is one chain (or one exact integer sum) over the
// columns inside a single tile call, so no choice made here can change a bit of the result.
#pragma once

#include "kernels/function_table.h"

namespace spel::kernels {
namespace {

/// m rows as tiles of nearly equal size: the first `larger` tiles have `rows_max` rows, the others
/// one less.
struct TilePlan {
  std::size_t tiles;
  std::size_t larger;
  std::size_t rows_max;
};

inline TilePlan plan_tiles(std::size_t m) {
  const std::size_t tiles = (m + kMaxTileRows - 1) / kMaxTileRows;
  const std::size_t base = m / tiles;
  const std::size_t extra = m % tiles;
  if (extra == 0) return {tiles, tiles, base};
  return {tiles, extra, base + 1};
}

/// Re-lays rows as [tile][word][rows of the tile], so that a tile's broadcasts are contiguous.
inline void pack_rows(const void* x, std::size_t stride_bytes, std::size_t rows, std::size_t words,
                      void* packed) {
  const TilePlan plan = plan_tiles(rows);
  const auto* in = static_cast<const unsigned char*>(x);
  auto* out = static_cast<unsigned char*>(packed);
  for (std::size_t tile = 0; tile < plan.tiles; ++tile) {
    const std::size_t t = tile < plan.larger ? plan.rows_max : plan.rows_max - 1;
    for (std::size_t row = 0; row < t; ++row) {
      for (std::size_t word = 0; word < words; ++word) {
        __builtin_memcpy(out + 4 * (word * t + row), in + 4 * word, 4);
      }
      in += stride_bytes;
    }
    out += 4 * words * t;
  }
}

/// One call of Tile::run<T, P> per tile, for P panels from `panel`.
template <class Tile, int T, int P, class Job>
inline void run_panel_group(const Job& job, const TilePlan& plan, std::size_t panel) {
  const auto* x = static_cast<const unsigned char*>(job.x.words);
  std::size_t row = 0;
  for (std::size_t tile = 0; tile < plan.tiles; ++tile) {
    if constexpr (T > 1) {
      if (tile >= plan.larger) {
        Tile::template run<T - 1, P>(job, panel, x, row);
        x += 4 * Tile::words(job) * (T - 1);
        row += T - 1;
        continue;
      }
    }
    Tile::template run<T, P>(job, panel, x, row);
    x += 4 * Tile::words(job) * T;
    row += T;
  }
}

template <class Tile, int T, int P, class Job>
inline void run_panels(const Job& job, const TilePlan& plan, std::size_t panel, std::size_t end) {
  for (; end - panel >= P; panel += P) run_panel_group<Tile, T, P>(job, plan, panel);
  if constexpr (P > 1) {
    if (panel < end) run_panels<Tile, T, P / 2>(job, plan, panel, end);
  }
}

/// Finds the compile-time tile height for the plan and runs all panels of [panel, end).
template <class Tile, int T, class Job>
inline void run_tiles(const Job& job, const TilePlan& plan, std::size_t panel, std::size_t end) {
  if (plan.rows_max == T) {
    run_panels<Tile, T, Tile::panels(T)>(job, plan, panel, end);
  } else if constexpr (T > 1) {
    run_tiles<Tile, T - 1>(job, plan, panel, end);
  }
}

template <class Tile, class Job>
inline void run_job(const Job& job, std::size_t panel, std::size_t end) {
  run_tiles<Tile, kMaxTileRows>(job, plan_tiles(job.x.rows), panel, end);
}

/// Stores one panel's sixteen outputs of one row, or fewer in the last panel.
inline void store_panel(float* y_row, std::size_t rows, std::size_t panel, F16 value) {
  const std::size_t first = panel * 16;
  if (rows - first >= 16) {
    store(y_row + first, value);
  } else {
    store_partial(y_row + first, rows - first, value);
  }
}

}  // namespace
}  // namespace spel::kernels
