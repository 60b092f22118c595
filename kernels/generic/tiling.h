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

inline TilePlan plan_tiles(std::size_t m, std::size_t rows_max) {
  const std::size_t tiles = (m + rows_max - 1) / rows_max;
  const std::size_t base = m / tiles;
  const std::size_t extra = m % tiles;
  if (extra == 0) {
    return {tiles, tiles, base};
  }
  return {tiles, extra, base + 1};
}

/// Re-lays rows as [tile][word][rows of the tile], so that a tile's broadcasts are contiguous.
inline void pack_rows(const void* x, std::size_t stride_bytes, std::size_t rows, std::size_t words,
                      std::size_t tile_rows_max, void* packed) {
  const TilePlan plan = plan_tiles(rows, tile_rows_max);
  const auto* in = static_cast<const unsigned char*>(x);
  auto* out = static_cast<unsigned char*>(packed);
  for (std::size_t tile = 0; tile < plan.tiles; ++tile) {
    const std::size_t t = tile < plan.larger ? plan.rows_max : plan.rows_max - 1;
    interleave_words(in, stride_bytes, t, words, t, out);
    in += stride_bytes * t;
    out += 4 * words * t;
  }
}

/// As a tile's kBlockWords: it takes its rows in one piece.
constexpr std::size_t kWholeRow = SIZE_MAX;

/// What one tile call works on: panels from `panel`, activation rows from `row`, words [begin,
/// end).
struct TilePlace {
  std::size_t panel;
  std::size_t row;
  const unsigned char* x;  ///< The tile's first word.
  std::size_t begin;
  std::size_t end;
  std::size_t tile;  ///< Which of `tiles` over the same weights: they share the prefetching.
  std::size_t tiles;
};

/// All tiles over P panels. With several tiles the words are cut into blocks, so that the second
/// tile finds the weights the first one fetched still close by.
template <class Tile, int T, int P, class Job>
inline void run_panel_group(const Job& job, const TilePlan& plan, std::size_t panel) {
  // Tiles one row shorter occur only beside others, and are then at least half of the tallest.
  constexpr bool kHasShorter = T - 1 >= (Tile::kRowsMax + 1) / 2;
  const std::size_t words = Tile::words(job);
  const std::size_t block = plan.tiles > 1 ? Tile::kBlockWords : words;
  TilePlace place = {panel, 0, nullptr, 0, 0, 0, plan.tiles};
  do {
    place.end = words - place.begin > block ? place.begin + block : words;
    place.x = static_cast<const unsigned char*>(job.x.words);
    place.row = 0;
    for (place.tile = 0; place.tile < plan.tiles; ++place.tile) {
      if constexpr (kHasShorter) {
        if (place.tile >= plan.larger) {
          Tile::template run<T - 1, P>(job, place);
          place.x += 4 * words * (T - 1);
          place.row += T - 1;
          continue;
        }
      }
      Tile::template run<T, P>(job, place);
      place.x += 4 * words * T;
      place.row += T;
    }
    place.begin = place.end;
  } while (place.begin < words);
}

/// Panels taken at once when fewer than P are left: halves where each panel alone would be bound by
/// latency, else one by one, which saves code.
constexpr int fewer_panels(int rows, int panels) { return rows <= 2 ? panels / 2 : 1; }

template <class Tile, int T, int P, class Job>
inline void run_panels(const Job& job, const TilePlan& plan, std::size_t panel, std::size_t end) {
  for (; end - panel >= P; panel += P) {
    run_panel_group<Tile, T, P>(job, plan, panel);
  }
  if constexpr (P > 1) {
    if (panel < end) {
      run_panels<Tile, T, fewer_panels(T, P)>(job, plan, panel, end);
    }
  }
}

/// Finds the compile-time tile height for the plan and runs all panels of [panel, end).
template <class Tile, int T, class Job>
inline void run_tiles(const Job& job, const TilePlan& plan, std::size_t panel, std::size_t end) {
  if (plan.rows_max == T) {
    run_panels<Tile, T, Tile::panels(T)>(job, plan, panel, end);
  } else if constexpr (T > Tile::kRowsMin) {
    run_tiles<Tile, T - 1>(job, plan, panel, end);
  }
}

template <class Tile, class Job>
inline void run_job(const Job& job, std::size_t panel, std::size_t end) {
  run_tiles<Tile, Tile::kRowsMax>(job, plan_tiles(job.x.rows, job.x.tile_rows_max), panel, end);
}

/// Outputs of a panel that exist: 16, or fewer in the last one.
inline std::size_t panel_lanes(std::size_t rows, std::size_t panel) {
  return rows - panel * 16 < 16 ? rows - panel * 16 : 16;
}

}  // namespace
}  // namespace spel::kernels
