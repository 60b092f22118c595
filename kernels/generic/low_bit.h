// int8 and ternary panel products with int8 activations. All sums are exact integers.
#pragma once

#include "kernels/generic/tiling.h"

namespace spel::kernels {
namespace {

inline I16 broadcast_word(const unsigned char* x) {
  std::int32_t word;
  __builtin_memcpy(&word, x, 4);
  return splat_word(word);
}

/// y = float(sum) * (row_scale * x_scale) for one row and one panel.
inline void store_scaled(const LowBitJob& job, std::size_t panel, std::size_t row, I16 sum) {
  const F16 scale = mul(load(job.row_scales + 16 * panel), splat(job.x_scales[row]));
  store_lanes(job.y + row * job.y_stride + 16 * panel, panel_lanes(job.rows, panel),
              mul(to_float(sum), scale));
}

/// Group g of a panel: four columns of sixteen rows, one byte each, stored plus 128.
struct Int8Tile {
  static constexpr int kRowsMin = 1;
  static constexpr int kRowsMax = kDenseTileRows;
  static constexpr int panels(int rows) { return dense_panels(rows); }
  static constexpr std::size_t kBlockWords = kWholeRow;
  static std::size_t words(const LowBitJob& job) { return job.groups; }

  template <int T, int P>
  static void run(const LowBitJob& job, const TilePlace& place) {
    I16 acc[T][P];
#pragma GCC unroll 16
    for (int t = 0; t < T; ++t) {
#pragma GCC unroll 8
      for (int p = 0; p < P; ++p) {
        acc[t][p] = splat_word(0);
      }
    }
    const std::byte* base = job.panels + place.panel * job.groups * 64;
    for (std::size_t g = 0; g < job.groups; ++g) {
      I16 w[P];
#pragma GCC unroll 8
      for (int p = 0; p < P; ++p) {
        w[p] = load_words(base + (static_cast<std::size_t>(p) * job.groups + g) * 64);
      }
#pragma GCC unroll 16
      for (int t = 0; t < T; ++t) {
        const I16 broadcast = broadcast_word(place.x + 4 * (T * g + static_cast<std::size_t>(t)));
#pragma GCC unroll 8
        for (int p = 0; p < P; ++p) {
          acc[t][p] = dot_weights(acc[t][p], w[p], broadcast);
        }
      }
    }
#pragma GCC unroll 16
    for (int t = 0; t < T; ++t) {
      const std::size_t i = place.row + static_cast<std::size_t>(t);
#pragma GCC unroll 8
      for (int p = 0; p < P; ++p) {
        I16 sum = acc[t][p];
        if constexpr (kInt8Biased) {
          sum = sub(sum, splat_word(128 * job.x_sums[i]));
        }
        store_scaled(job, place.panel + static_cast<std::size_t>(p), i, sum);
      }
    }
  }
};

// Ternary group g of a panel: sixteen columns of sixteen rows. Byte b of a row's 32-bit lane holds
// in its field f (bits 2f, 2f+1) the code w + 1 of column 16 g + 4 f + b: so field f of the whole
// register meets the activation word 4 g + f.

/// Few rows: fields are masked in place, without shifts, into accumulators weighted by powers of 4.
struct MaskedFieldTile {
  static constexpr int kRowsMin = 1;
  static constexpr int kRowsMax = kMaskedFieldRows;
  static constexpr int panels(int rows) { return masked_field_panels(rows); }
  static constexpr std::size_t kBlockWords = kWholeRow;
  static std::size_t words(const LowBitJob& job) { return 4 * job.groups; }

  template <int F, int T, int P>
  static void field(I16 (&acc)[T][P][4], int p, I16 w, const unsigned char* x) {
    const I16 code = masked_field<F>(w);
#pragma GCC unroll 16
    for (int t = 0; t < T; ++t) {
      acc[t][p][F] = dot_bytes(acc[t][p][F], code, broadcast_word(x + 4 * (F * T + t)));
    }
  }

  template <int T, int P>
  static void run(const LowBitJob& job, const TilePlace& place) {
    I16 acc[T][P][4];
#pragma GCC unroll 16
    for (int t = 0; t < T; ++t) {
#pragma GCC unroll 8
      for (int p = 0; p < P; ++p) {
#pragma GCC unroll 4
        for (int f = 0; f < 4; ++f) {
          acc[t][p][f] = splat_word(0);
        }
      }
    }
    const std::byte* base = job.panels + place.panel * job.groups * 64;
    for (std::size_t g = 0; g < job.groups; ++g) {
#pragma GCC unroll 8
      for (int p = 0; p < P; ++p) {
        const I16 w = load_words(base + (static_cast<std::size_t>(p) * job.groups + g) * 64);
        const unsigned char* words_at = place.x + 16 * T * g;
        field<0, T, P>(acc, p, w, words_at);
        field<1, T, P>(acc, p, w, words_at);
        field<2, T, P>(acc, p, w, words_at);
        field<3, T, P>(acc, p, w, words_at);
      }
    }
#pragma GCC unroll 16
    for (int t = 0; t < T; ++t) {
      const std::size_t i = place.row + static_cast<std::size_t>(t);
#pragma GCC unroll 8
      for (int p = 0; p < P; ++p) {
        // Each accumulator is a multiple of its weight, so the shifts are exact.
        const I16 low = add(shift_right_signed<kFieldShift[0]>(acc[t][p][0]),
                            shift_right_signed<kFieldShift[1]>(acc[t][p][1]));
        const I16 high = add(shift_right_signed<kFieldShift[2]>(acc[t][p][2]),
                             shift_right_signed<kFieldShift[3]>(acc[t][p][3]));
        // Codes are w + 1: the activations were added once too often.
        const I16 sum = sub(add(low, high), splat_word(job.x_sums[i]));
        store_scaled(job, place.panel + static_cast<std::size_t>(p), i, sum);
      }
    }
  }
};

/// Many rows: a field is shifted down once and serves all of them, one accumulator each.
struct ShiftedFieldTile {
  static constexpr int kRowsMin = kMaskedFieldRows + 1;
  static constexpr int kRowsMax = kTernaryTileRows;
  static constexpr int panels(int rows) { return shifted_field_panels(rows); }
  static constexpr std::size_t kBlockWords = kWholeRow;
  static std::size_t words(const LowBitJob& job) { return 4 * job.groups; }

  template <int F, int T, int P>
  static void field(I16 (&acc)[T][P], const I16 (&w)[P], const unsigned char* x) {
    I16 code[P];
#pragma GCC unroll 8
    for (int p = 0; p < P; ++p) {
      code[p] = codes<F>(w[p]);
    }
#pragma GCC unroll 16
    for (int t = 0; t < T; ++t) {
      const I16 broadcast = broadcast_word(x + 4 * (F * T + t));
#pragma GCC unroll 8
      for (int p = 0; p < P; ++p) {
        acc[t][p] = dot_bytes(acc[t][p], code[p], broadcast);
      }
    }
  }

  template <int T, int P>
  static void run(const LowBitJob& job, const TilePlace& place) {
    I16 acc[T][P];
#pragma GCC unroll 16
    for (int t = 0; t < T; ++t) {
#pragma GCC unroll 8
      for (int p = 0; p < P; ++p) {
        acc[t][p] = splat_word(0);
      }
    }
    const std::byte* base = job.panels + place.panel * job.groups * 64;
    for (std::size_t g = 0; g < job.groups; ++g) {
      I16 w[P];
#pragma GCC unroll 8
      for (int p = 0; p < P; ++p) {
        w[p] = load_words(base + (static_cast<std::size_t>(p) * job.groups + g) * 64);
      }
      const unsigned char* words_at = place.x + 16 * T * g;
      field<0, T, P>(acc, w, words_at);
      field<1, T, P>(acc, w, words_at);
      field<2, T, P>(acc, w, words_at);
      field<3, T, P>(acc, w, words_at);
    }
#pragma GCC unroll 16
    for (int t = 0; t < T; ++t) {
      const std::size_t i = place.row + static_cast<std::size_t>(t);
#pragma GCC unroll 8
      for (int p = 0; p < P; ++p) {
        const I16 sum = sub(acc[t][p], splat_word(job.x_sums[i]));
        store_scaled(job, place.panel + static_cast<std::size_t>(p), i, sum);
      }
    }
  }
};

/// The same product by masked additions: no multiplication and no correction, one row at a time.
struct AddSubTile {
  static constexpr int kRowsMin = 1;
  static constexpr int kRowsMax = kTernaryTileRows;
  static constexpr int panels(int) { return 1; }
  static constexpr std::size_t kBlockWords = kWholeRow;
  static std::size_t words(const LowBitJob& job) { return 4 * job.groups; }

  template <int T, int P>
  static void run(const LowBitJob& job, const TilePlace& place) {
    for (std::size_t t = 0; t < T; ++t) {
      store_scaled(job, place.panel, place.row + t,
                   sum_of_row(job, place.panel, place.x + 4 * t, 4 * T));
    }
  }

  /// The activation words of one row lie `stride` bytes apart.
  static I16 sum_of_row(const LowBitJob& job, std::size_t panel, const unsigned char* x,
                        std::size_t stride) {
    const std::byte* w = job.panels + panel * job.groups * 64;
    I16 even = splat_word(0);
    I16 odd = splat_word(0);
    for (std::size_t g = 0; g < job.groups; ++g, w += 64, x += 4 * stride) {
      const I16 packed = load_words(w);
      even = add_sub(even, codes<0>(packed), broadcast_word(x));
      odd = add_sub(odd, codes<1>(packed), broadcast_word(x + stride));
      even = add_sub(even, codes<2>(packed), broadcast_word(x + 2 * stride));
      odd = add_sub(odd, codes<3>(packed), broadcast_word(x + 3 * stride));
    }
    return add(even, odd);
  }
};

inline std::size_t ternary_panel_group(std::size_t m) {
  const int rows = static_cast<int>(plan_tiles(m, kTernaryTileRows).rows_max);
  return static_cast<std::size_t>(rows <= kMaskedFieldRows ? masked_field_panels(rows)
                                                           : shifted_field_panels(rows));
}
inline void matmul_int8(const LowBitJob& job, std::size_t begin, std::size_t end) {
  run_job<Int8Tile>(job, begin, end);
}
inline void matmul_ternary_dotprod(const LowBitJob& job, std::size_t begin, std::size_t end) {
  if (job.x.rows <= static_cast<std::size_t>(kMaskedFieldRows)) {
    run_job<MaskedFieldTile>(job, begin, end);
  } else {
    run_job<ShiftedFieldTile>(job, begin, end);
  }
}
inline void matmul_ternary_addsub(const LowBitJob& job, std::size_t begin, std::size_t end) {
  run_job<AddSubTile>(job, begin, end);
}

/// The plain reading of the layout, one weight at a time.
inline void matmul_ternary_scalar(const LowBitJob& job, std::size_t begin, std::size_t end) {
  const std::size_t words = 4 * job.groups;
  const std::size_t last = end * 16 < job.rows ? end * 16 : job.rows;
  for (std::size_t r = begin * 16; r < last; ++r) {
    const TilePlan plan = plan_tiles(job.x.rows, job.x.tile_rows_max);
    const auto* x = static_cast<const std::int8_t*>(job.x.words);
    std::size_t i = 0;
    for (std::size_t tile = 0; tile < plan.tiles; ++tile) {
      const std::size_t t = tile < plan.larger ? plan.rows_max : plan.rows_max - 1;
      for (std::size_t row = 0; row < t; ++row, ++i) {
        std::int32_t sum = 0;
        for (std::size_t c = 0; c < 4 * words; ++c) {
          const std::size_t byte = ((r / 16) * job.groups + c / 16) * 64 + (r % 16) * 4 + c % 4;
          const auto code = (static_cast<unsigned>(job.panels[byte]) >> (2 * (c % 16 / 4))) & 3U;
          sum += (static_cast<std::int32_t>(code) - 1) * x[4 * (c / 4 * t + row) + c % 4];
        }
        const float scale = job.row_scales[r] * job.x_scales[i];
        job.y[i * job.y_stride + r] = static_cast<float>(sum) * scale;
      }
      x += 4 * words * t;
    }
  }
}

inline std::int32_t sum_int8(const std::int8_t* x, std::size_t n) {
  std::int32_t sum = 0;
  for (std::size_t i = 0; i < n; ++i) {
    sum += x[i];
  }
  return sum;
}

inline void quantize_row(const float* x, std::size_t n, std::int8_t* q, std::size_t stride,
                         float* scale) {
  F16 largest = splat(0.0F);
  std::size_t i = 0;
  // max keeps its second argument when the first is NaN, so NaN never becomes the scale.
  for (; i + 16 <= n; i += 16) {
    largest = max(abs(load(x + i)), largest);
  }
  if (i < n) {
    largest = max(abs(load_partial(x + i, n - i)), largest);
  }
  const float peak = max_lanes(largest);
  *scale = peak > 0.0F ? peak / 127.0F : 1e-12F;
  const F16 divisor = splat(*scale);
  const F16 high = splat(127.0F);
  const F16 low = splat(-127.0F);
  for (i = 0; i + 16 <= n; i += 16) {
    store_rounded_int8(q + i, min(max(div(load(x + i), divisor), low), high));
  }
  if (i < n) {
    std::int8_t tail[16];
    store_rounded_int8(tail, min(max(div(load_partial(x + i, n - i), divisor), low), high));
    for (std::size_t j = 0; i < n; ++i, ++j) {
      q[i] = tail[j];
    }
  }
  for (; i < stride; ++i) {
    q[i] = 0;
  }
}

}  // namespace
}  // namespace spel::kernels
