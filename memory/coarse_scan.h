// The first round of addressing: every note's anchors, in 8-bit integers, against a query's tail.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "memory/note.h"

namespace spel::memory {

/// Query tokens compared in the first round, and coordinates of each.
inline constexpr std::size_t kCoarseTokens = 2;
inline constexpr std::size_t kCoarseCoordinates = 16;
/// Coordinates that lie side by side: as many as one integer instruction takes.
inline constexpr std::size_t kCoarseGroup = 4;
inline constexpr std::size_t kCoarseBytes = kCoarseCoordinates * kAnchors;

/// The coordinates of sketches are below 1 and most below a third. 254 to the unit, cut at a half.
[[nodiscard]] std::int8_t to_coarse(float coordinate) noexcept;

/// Writes the first kCoarseCoordinates of a BF16 sketch [kSketchCoordinates][kAnchors] as
/// [coordinates / kCoarseGroup][kAnchors][kCoarseGroup], each plus 128.
void make_coarse(std::span<const std::uint16_t> sketch, std::span<std::uint8_t> out) noexcept;

/// The last kCoarseTokens tokens of a query, the last one last; tokens there are not are zero.
using CoarseQuery = std::array<std::array<std::int8_t, kCoarseCoordinates>, kCoarseTokens>;

/// scores[i] = max over anchors a of <last, anchor a> + <last but one, anchor a - 1>, of the i-th
/// of `notes` blocks. Integers: the same on every instruction set.
using CoarseScan = void (*)(const std::uint8_t* blocks, std::size_t notes, const CoarseQuery& query,
                            std::int32_t* scores);

/// All this processor has, the fastest last; the first one is the definition.
[[nodiscard]] std::span<const CoarseScan> coarse_scans() noexcept;

}  // namespace spel::memory
