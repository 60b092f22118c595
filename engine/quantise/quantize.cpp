#include "engine/quantise/quantize.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>

namespace spel::engine {
namespace {

constexpr float kInt8Max = 127.0F;
constexpr float kSmallestRowMax = 1e-8F;
constexpr int kRefinements = 3;
constexpr std::size_t kCodesPerByte = 4;
constexpr std::size_t kPartialSums = 8;

/// Adding 1.5 * 2^23 leaves no bits for a fraction, so the addition itself rounds half to even.
/// |x| must be below 2^22.
float round_half_even(float x) {
  constexpr float kNoFraction = 12582912.0F;
  return (x + kNoFraction) - kNoFraction;
}

struct AbsSum {
  double sum = 0;
  std::size_t count = 0;
};

/// Sum and number of the |w| above `threshold`.
AbsSum sum_above(std::span<const float> row, float threshold) {
  std::array<double, kPartialSums> sums{};
  std::array<std::uint32_t, kPartialSums> counts{};
  const auto add = [&](std::size_t lane, float w) {
    const float a = std::fabs(w);
    const bool kept = a > threshold;
    sums[lane] += kept ? static_cast<double>(a) : 0.0;
    counts[lane] += kept ? 1U : 0U;
  };
  std::size_t i = 0;
  for (; i + kPartialSums <= row.size(); i += kPartialSums) {
    for (std::size_t lane = 0; lane < kPartialSums; ++lane) {
      add(lane, row[i + lane]);
    }
  }
  for (std::size_t lane = 0; i < row.size(); ++i, ++lane) {
    add(lane, row[i]);
  }
  AbsSum total;
  for (std::size_t lane = 0; lane < kPartialSums; ++lane) {
    total.sum += sums[lane];
    total.count += counts[lane];
  }
  return total;
}

float ternary_scale(std::span<const float> row) {
  // A threshold below every |w| makes the first sum one over the whole row.
  const AbsSum all = sum_above(row, -1.0F);
  auto scale = static_cast<float>(all.sum / static_cast<double>(row.size()));
  for (int i = 0; i < kRefinements; ++i) {
    const AbsSum kept = sum_above(row, scale * 0.5F);
    scale =
        static_cast<float>(kept.sum / static_cast<double>(std::max<std::size_t>(kept.count, 1)));
  }
  return scale;
}

/// The largest latent of a row with this scale; see dequantize_int8().
float largest_latent(float scale) {
  const float product = kInt8Max * scale;
  for (const float candidate :
       {product, std::nextafterf(product, 0.0F), std::nextafterf(product, HUGE_VALF)}) {
    if (candidate / kInt8Max == scale) {
      return candidate;
    }
  }
  return product;
}

int ternary_code_value(unsigned code) { return code == 1 ? 1 : code == 3 ? -1 : 0; }

}  // namespace

Int8Rows quantize_int8(std::span<const float> weights, std::size_t rows, std::size_t cols) {
  Int8Rows out;
  out.values.resize(rows * cols);
  out.scales.resize(rows);
  for (std::size_t r = 0; r < rows; ++r) {
    const std::span<const float> row = weights.subspan(r * cols, cols);
    float largest = kSmallestRowMax;
    for (const float w : row) {
      largest = std::max(largest, std::fabs(w));
    }
    const float scale = largest / kInt8Max;
    out.scales[r] = scale;
    for (std::size_t c = 0; c < cols; ++c) {
      const float code = std::clamp(round_half_even(row[c] / scale), -kInt8Max, kInt8Max);
      out.values[r * cols + c] = static_cast<std::int8_t>(code);
    }
  }
  return out;
}

TernaryRows quantize_ternary(std::span<const float> weights, std::size_t rows, std::size_t cols) {
  TernaryRows out;
  out.packed.assign(rows * cols / kCodesPerByte, 0);
  out.scales.resize(rows);
  for (std::size_t r = 0; r < rows; ++r) {
    const std::span<const float> row = weights.subspan(r * cols, cols);
    const float scale = ternary_scale(row);
    const float threshold = scale * 0.5F;
    out.scales[r] = scale;
    std::uint8_t* packed = out.packed.data() + r * cols / kCodesPerByte;
    for (std::size_t c = 0; c < cols; ++c) {
      const unsigned code = std::fabs(row[c]) > threshold ? (row[c] < 0 ? 3U : 1U) : 0U;
      packed[c / kCodesPerByte] = static_cast<std::uint8_t>(packed[c / kCodesPerByte] |
                                                            (code << (2 * (c % kCodesPerByte))));
    }
  }
  return out;
}

std::vector<float> dequantize_int8(const Int8Rows& rows, std::size_t cols) {
  std::vector<float> out(rows.values.size());
  for (std::size_t r = 0; r < rows.scales.size(); ++r) {
    const float scale = rows.scales[r];
    const float largest = largest_latent(scale);
    for (std::size_t i = r * cols; i < (r + 1) * cols; ++i) {
      const std::int8_t code = rows.values[i];
      const float magnitude =
          std::abs(code) == 127 ? largest : static_cast<float>(std::abs(code)) * scale;
      out[i] = code < 0 ? -magnitude : magnitude;
    }
  }
  return out;
}

std::vector<float> dequantize_ternary(const TernaryRows& rows, std::size_t cols) {
  std::vector<float> out(rows.packed.size() * kCodesPerByte);
  for (std::size_t i = 0; i < out.size(); ++i) {
    const unsigned code = (rows.packed[i / kCodesPerByte] >> (2 * (i % kCodesPerByte))) & 3U;
    out[i] = static_cast<float>(ternary_code_value(code)) * rows.scales[i / cols];
  }
  return out;
}

}  // namespace spel::engine
