#include "memory/block_dots.h"

#include <algorithm>
#include <array>

#include "memory/bf16.h"

namespace spel::memory {
namespace {

/// Queries looked at in one go over a block: their sums stay in registers.
constexpr std::size_t kQueriesAtOnce = 4;

template <std::size_t queries_at_once>
[[gnu::always_inline]] inline void dots(const std::uint16_t* block, const float* queries,
                                        std::size_t dim, float* out) {
  std::array<std::array<float, kBlockRows>, queries_at_once> sums{};
  for (std::size_t i = 0; i < dim; ++i) {
    std::array<float, kBlockRows> row;
    for (std::size_t lane = 0; lane < kBlockRows; ++lane) {
      row[lane] = from_bf16(block[i * kBlockRows + lane]);
    }
    for (std::size_t q = 0; q < queries_at_once; ++q) {
      const float query = queries[q * dim + i];
      for (std::size_t lane = 0; lane < kBlockRows; ++lane) {
        sums[q][lane] += query * row[lane];
      }
    }
  }
  for (std::size_t q = 0; q < queries_at_once; ++q) {
    std::copy(sums[q].begin(), sums[q].end(), out + q * kBlockRows);
  }
}

[[gnu::always_inline]] inline void all_dots(const std::uint16_t* block, const float* queries,
                                            std::size_t count, std::size_t dim, float* out) {
  std::size_t done = 0;
  for (; done + kQueriesAtOnce <= count; done += kQueriesAtOnce) {
    dots<kQueriesAtOnce>(block, queries + done * dim, dim, out + done * kBlockRows);
  }
  for (; done < count; ++done) {
    dots<1>(block, queries + done * dim, dim, out + done * kBlockRows);
  }
}

void plain(const std::uint16_t* block, const float* queries, std::size_t count, std::size_t dim,
           float* out) {
  all_dots(block, queries, count, dim, out);
}

#if defined(__x86_64__)
[[gnu::target("avx2")]] void avx2(const std::uint16_t* block, const float* queries,
                                  std::size_t count, std::size_t dim, float* out) {
  all_dots(block, queries, count, dim, out);
}

[[gnu::target("avx512f,avx512bw,prefer-vector-width=512")]] void avx512(const std::uint16_t* block,
                                                                        const float* queries,
                                                                        std::size_t count,
                                                                        std::size_t dim,
                                                                        float* out) {
  all_dots(block, queries, count, dim, out);
}
#endif

}  // namespace

BlockDots select_block_dots() noexcept {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw")) {
    return &avx512;
  }
  if (__builtin_cpu_supports("avx2")) {
    return &avx2;
  }
#endif
  return &plain;
}

}  // namespace spel::memory
