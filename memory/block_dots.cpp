#include "memory/block_dots.h"

#include <array>
#include <cstring>

namespace spel::memory {
namespace {

// One block row as a vector: the compiler splits it into whatever registers the target has.
using Halves [[gnu::vector_size(kBlockRows * sizeof(std::uint16_t))]] = std::uint16_t;
using Words [[gnu::vector_size(kBlockRows * sizeof(std::uint32_t))]] = std::uint32_t;
using Floats [[gnu::vector_size(kBlockRows * sizeof(float))]] = float;

template <std::size_t queries_at_once>
[[gnu::always_inline]] inline void dots(const std::uint16_t* block, const float* queries,
                                        std::size_t dim, float* out) {
  std::array<Floats, queries_at_once> sums{};
  for (std::size_t i = 0; i < dim; ++i) {
    Halves halves;
    std::memcpy(&halves, block + i * kBlockRows, sizeof(halves));
    const Words words = __builtin_convertvector(halves, Words) << 16U;
    Floats row;
    std::memcpy(&row, &words, sizeof(row));
    for (std::size_t q = 0; q < queries_at_once; ++q) {
      sums[q] += row * queries[q * dim + i];
    }
  }
  for (std::size_t q = 0; q < queries_at_once; ++q) {
    std::memcpy(out + q * kBlockRows, &sums[q], sizeof(Floats));
  }
}

[[gnu::always_inline]] inline void all_dots(const std::uint16_t* block, const float* queries,
                                            std::size_t count, std::size_t dim, float* out) {
  std::size_t done = 0;
  for (; done + 4 <= count; done += 4) {
    dots<4>(block, queries + done * dim, dim, out + done * kBlockRows);
  }
  for (; done + 2 <= count; done += 2) {
    dots<2>(block, queries + done * dim, dim, out + done * kBlockRows);
  }
  if (done < count) {
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
