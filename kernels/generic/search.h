// Searching and choosing notes: bf16 and 8-bit panels, and sums in the order of their elements.
// Products and sums are rounded one by one here, unlike everywhere else: what banks hold, and what
// has been found in them, was computed so.
#pragma once

#include "kernels/generic/rows.h"

namespace spel::kernels {
namespace {

/// out + q * out_stride: sixteen dots of query q, for Q queries.
template <int Q>
inline void bf16_dots_of(const std::uint16_t* panel, const float* queries, std::size_t dim,
                         float* out, std::size_t out_stride) {
  F16 sum[Q];
#pragma GCC unroll 4
  for (int q = 0; q < Q; ++q) {
    sum[q] = splat(0.0F);
  }
  for (std::size_t i = 0; i < dim; ++i) {
    const F16 row = load_bf16(panel + 16 * i);
#pragma GCC unroll 4
    for (int q = 0; q < Q; ++q) {
      sum[q] = add(sum[q], mul(row, splat(queries[static_cast<std::size_t>(q) * dim + i])));
    }
  }
#pragma GCC unroll 4
  for (int q = 0; q < Q; ++q) {
    store(out + static_cast<std::size_t>(q) * out_stride, sum[q]);
  }
}

inline void bf16_dots_strided(const std::uint16_t* panel, const float* queries, std::size_t count,
                              std::size_t dim, float* out, std::size_t out_stride) {
  std::size_t q = 0;
  for (; q + 4 <= count; q += 4) {
    bf16_dots_of<4>(panel, queries + q * dim, dim, out + q * out_stride, out_stride);
  }
  for (; q < count; ++q) {
    bf16_dots_of<1>(panel, queries + q * dim, dim, out + q * out_stride, out_stride);
  }
}

inline void bf16_dots(const std::uint16_t* panel, const float* queries, std::size_t count,
                      std::size_t dim, float* out) {
  bf16_dots_strided(panel, queries, count, dim, out, 16);
}

inline float bf16_alignment(const std::uint16_t* panel, const float* queries, std::size_t tokens,
                            std::size_t dim) {
  // Sixteen zeros before the dots of each token: read from `back` before them, the lanes of
  // anchors there are not add nothing.
  constexpr std::size_t kStride = 32;
  float dots[kStride * kLanes];
  for (std::size_t token = 0; token < tokens; ++token) {
    store(dots + kStride * token, splat(0.0F));
  }
  bf16_dots_strided(panel, queries, tokens, dim, dots + kLanes, kStride);
  F16 total = splat(0.0F);
  for (std::size_t back = 0; back < tokens; ++back) {
    total = add(total, load(dots + kStride * (tokens - 1 - back) + kLanes - back));
  }
  return max_lanes(total) / static_cast<float>(tokens);
}

/// What each anchor of a panel adds for one token of the query.
struct CoarseToken {
  I16 start;  ///< Takes off what the offset of the stored bytes adds.
  I16 words[kCoarseCoordinates / 4];
};

inline CoarseToken coarse_token(const std::int8_t* values) {
  std::int32_t sum = 0;
  for (std::size_t i = 0; i < kCoarseCoordinates; ++i) {
    sum += values[i];
  }
  CoarseToken token;
  token.start = splat_word(kInt8Biased ? -128 * sum : 0);
#pragma GCC unroll 4
  for (std::size_t group = 0; group < kCoarseCoordinates / 4; ++group) {
    std::int32_t word;
    __builtin_memcpy(&word, values + 4 * group, sizeof(word));
    token.words[group] = splat_word(word);
  }
  return token;
}

inline void coarse_alignments(const std::uint8_t* panels, std::size_t count,
                              const std::int8_t* query, std::int32_t* scores) {
  static_assert(kCoarseTokens == 2, "two tokens are aligned here");
  constexpr std::size_t kPanelBytes = kCoarseCoordinates * kLanes;
  // The processor's own prefetching stops at the borders of small pages, every sixteen panels.
  // Beyond the last one this asks for nothing that harms.
  constexpr std::size_t kAhead = 16 * kPanelBytes;
  const CoarseToken before = coarse_token(query);
  const CoarseToken last = coarse_token(query + kCoarseCoordinates);
  for (std::size_t i = 0; i < count; ++i) {
    const std::uint8_t* panel = panels + i * kPanelBytes;
    for (std::size_t line = 0; line < kPanelBytes; line += 64) {
      prefetch(panel + kAhead + line);
    }
    I16 sum_before = before.start;
    I16 sum_last = last.start;
#pragma GCC unroll 4
    for (std::size_t group = 0; group < kCoarseCoordinates / 4; ++group) {
      const I16 anchors = load_words(panel + group * 4 * kLanes);
      sum_before = dot_weights(sum_before, anchors, before.words[group]);
      sum_last = dot_weights(sum_last, anchors, last.words[group]);
    }
    scores[i] = max_lanes(add(sum_last, shift_up(sum_before)));
  }
}

inline void ordered_dots(const float* rows, std::size_t stride, std::size_t count, const float* x,
                         std::size_t n, float* out) {
  // Sixteen rows are re-laid block by block, one a lane, so that sixteen chains run side by side.
  constexpr std::size_t kBlock = 64;
  float block[kBlock * kLanes] = {};
  for (std::size_t row = 0; row < count; row += kLanes) {
    const std::size_t lanes = count - row < kLanes ? count - row : kLanes;
    F16 sum = splat(0.0F);
    for (std::size_t i = 0; i < n; i += kBlock) {
      const std::size_t words = n - i < kBlock ? n - i : kBlock;
      interleave_words(reinterpret_cast<const unsigned char*>(rows + row * stride + i),
                       stride * sizeof(float), lanes, words, kLanes,
                       reinterpret_cast<unsigned char*>(block));
      for (std::size_t word = 0; word < words; ++word) {
        sum = add(sum, mul(load(block + kLanes * word), splat(x[i + word])));
      }
    }
    store_lanes(out + row, lanes, sum);
  }
}

inline void unit_rows(float* x, std::size_t rows, std::size_t n) {
  for (std::size_t row = 0; row < rows; ++row, x += n) {
    float squares = 0.0F;
    for (std::size_t i = 0; i < n; ++i) {
      squares += x[i] * x[i];
    }
    const F16 scale = splat(squares > 0.0F ? 1.0F / square_root(squares) : 0.0F);
    map_row(x, n, x, [&](std::size_t, F16 v) { return mul(v, scale); });
  }
}

inline void project(const float* x, const ProjectedTo* places, std::size_t n, float* out) {
  for (std::size_t i = 0; i < n; ++i) {
    out[places[i].output] += places[i].sign * x[i];
  }
}

}  // namespace
}  // namespace spel::kernels
