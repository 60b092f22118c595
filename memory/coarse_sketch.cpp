#include "memory/coarse_sketch.h"

#include <algorithm>

#include "memory/bf16.h"

namespace spel::memory {

std::int8_t to_coarse(float coordinate) noexcept {
  constexpr float kScale = 254.0F;
  constexpr float kLargest = 127.0F;
  const float scaled = std::clamp(coordinate * kScale, -kLargest, kLargest);
  return static_cast<std::int8_t>(scaled + (scaled < 0.0F ? -0.5F : 0.5F));
}

void make_coarse(std::span<const std::uint16_t> sketch, std::span<std::uint8_t> out) noexcept {
  constexpr std::size_t kGroup = 4;
  constexpr int kOffset = 128;
  for (std::size_t i = 0; i < kernels::kCoarseCoordinates; ++i) {
    for (std::size_t anchor = 0; anchor < kAnchors; ++anchor) {
      const std::size_t at = (i / kGroup * kAnchors + anchor) * kGroup + i % kGroup;
      out[at] =
          static_cast<std::uint8_t>(to_coarse(from_bf16(sketch[i * kAnchors + anchor])) + kOffset);
    }
  }
}

}  // namespace spel::memory
