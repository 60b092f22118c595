// BF16 as coordinates are stored: the upper half of an f32.
#pragma once

#include <bit>
#include <cstdint>

namespace spel::memory {

/// Round to nearest, ties to even. Coordinates are finite: they come from normalised keys.
[[nodiscard]] inline std::uint16_t to_bf16(float value) noexcept {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  return static_cast<std::uint16_t>((bits + 0x7fffU + ((bits >> 16U) & 1U)) >> 16U);
}

[[nodiscard]] inline float from_bf16(std::uint16_t value) noexcept {
  return std::bit_cast<float>(static_cast<std::uint32_t>(value) << 16U);
}

}  // namespace spel::memory
