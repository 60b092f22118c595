// The document's two quantisers, from f32 rows to the packed forms of the draft.
//
// Both work row by row with a fixed order of operations, so the same f32 rows give the same bytes
// on every machine: f32 arithmetic as written, and sums in double over eight interleaved partial
// sums (element i goes to sum i % 8), then added in order.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace spel::engine {

/// int8 rows: value = code * scale.
struct Int8Rows {
  std::vector<std::int8_t> values;  ///< [rows][cols]
  std::vector<float> scales;        ///< [rows]
};

/// Ternary rows, four codes a byte, low bits first: 0 -> 0, 1 -> +scale, 3 -> -scale, 2 -> 0.
struct TernaryRows {
  std::vector<std::uint8_t> packed;  ///< [rows][cols / 4]
  std::vector<float> scales;         ///< [rows]
};

/// "q8": scale = max(max|w|, 1e-8) / 127; code = w / scale rounded half to even, within ±127.
[[nodiscard]] Int8Rows quantize_int8(std::span<const float> weights, std::size_t rows,
                                     std::size_t cols);

/// Least squares with three refinements: s = mean|w|; three times, over the weights with
/// |w| > s/2, s = sum|w| / max(count, 1); then code = sign(w) where |w| > s/2, else 0. `cols` must
/// be a multiple of 4.
[[nodiscard]] TernaryRows quantize_ternary(std::span<const float> weights, std::size_t rows,
                                           std::size_t cols);

/// Latents for rows quantised earlier. quantize_int8() of the result gives the same codes and
/// scales back whenever the rows came from quantize_int8(): the ±127 entries are set to the f32
/// value nearest to 127 * scale that divides back to exactly `scale`.
[[nodiscard]] std::vector<float> dequantize_int8(const Int8Rows& rows, std::size_t cols);

/// Latents for ternary rows: 0 and ±scale. A fixed point of quantize_ternary() for scales above 0.
[[nodiscard]] std::vector<float> dequantize_ternary(const TernaryRows& rows, std::size_t cols);

}  // namespace spel::engine
