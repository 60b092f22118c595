// What the first round of addressing compares: a note's sketch in 8-bit integers.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "kernels/params.h"
#include "memory/note.h"

namespace spel::memory {

static_assert(kAnchors == kernels::kLanes, "a note's anchors are the lanes of one panel");

inline constexpr std::size_t kCoarseBytes = kernels::kCoarseCoordinates * kAnchors;

/// The coordinates of sketches are below 1 and most below a third. 254 to the unit, cut at a half.
[[nodiscard]] std::int8_t to_coarse(float coordinate) noexcept;

/// Writes the first coordinates of a BF16 sketch [kSketchCoordinates][kAnchors] as a panel of
/// Kernels::coarse_alignments().
void make_coarse(std::span<const std::uint16_t> sketch, std::span<std::uint8_t> out) noexcept;

/// The last tokens of a query, the last one last; tokens there are not are zero.
using CoarseQuery =
    std::array<std::array<std::int8_t, kernels::kCoarseCoordinates>, kernels::kCoarseTokens>;

}  // namespace spel::memory
