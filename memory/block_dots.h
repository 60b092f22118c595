// The inner loop of addressing: BF16 rows against a few f32 queries.
#pragma once

#include <cstddef>
#include <cstdint>

namespace spel::memory {

/// Rows that lie side by side in a block.
inline constexpr std::size_t kBlockRows = 16;

/// out[q][row] = sum over i of queries[q][i] * block[i][row], in the order of i, for one block
/// [dim][kBlockRows]. Every instruction set gives the same bits: a row is a lane, products and sums
/// are rounded one by one.
using BlockDots = void (*)(const std::uint16_t* block, const float* queries, std::size_t count,
                           std::size_t dim, float* out);

/// The fastest this processor has.
[[nodiscard]] BlockDots select_block_dots() noexcept;

}  // namespace spel::memory
