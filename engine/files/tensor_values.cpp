#include "engine/files/tensor_values.h"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstring>
#include <string>

#include "config/base/error.h"

namespace spel::engine {
namespace {

constexpr std::uint32_t kExponentF32 = 0x7F800000U;
constexpr std::uint16_t kExponentBf16 = 0x7F80U;
constexpr std::uint16_t kExponentF16 = 0x7C00U;
constexpr std::uint32_t kLowHalf = 0xFFFFU;
constexpr std::size_t kScanBlock = 4096;

template <typename Bits>
Bits load(std::span<const std::byte> data, std::size_t index) {
  Bits bits{};
  std::memcpy(&bits, data.data() + index * sizeof(Bits), sizeof(Bits));
  return bits;
}

/// Exact: f32 holds every half. The product moves the exponent's bias, and makes of a half's
/// subnormal what it is worth.
float float_of_f16(std::uint16_t half) {
  const std::uint32_t sign = std::uint32_t{half & 0x8000U} << 16;
  const std::uint32_t rest = std::uint32_t{half & 0x7FFFU} << 13;
  constexpr float kBias = 0x1p112F;
  return std::bit_cast<float>(std::bit_cast<std::uint32_t>(std::bit_cast<float>(rest) * kBias) |
                              sign);
}

/// A whole block is tested without branches first, so that good data is scanned at memory speed.
template <typename Bits>
std::optional<std::size_t> first_with_full_exponent(std::span<const std::byte> data,
                                                    Bits exponent) {
  const std::size_t count = data.size() / sizeof(Bits);
  for (std::size_t begin = 0; begin < count; begin += kScanBlock) {
    const std::size_t end = std::min(count, begin + kScanBlock);
    Bits any = 0;
    for (std::size_t i = begin; i < end; ++i) {
      any = static_cast<Bits>(any | ((load<Bits>(data, i) & exponent) == exponent ? 1 : 0));
    }
    for (std::size_t i = begin; any != 0 && i < end; ++i) {
      if ((load<Bits>(data, i) & exponent) == exponent) {
        return i;
      }
    }
  }
  return std::nullopt;
}

}  // namespace

void to_float(std::span<const std::byte> data, DType dtype, std::span<float> out) {
  if (out.empty()) {
    return;
  }
  if (dtype == DType::kF32) {
    std::memcpy(out.data(), data.data(), out.size_bytes());
    return;
  }
  for (std::size_t i = 0; i < out.size(); ++i) {
    const auto half = load<std::uint16_t>(data, i);
    out[i] =
        dtype == DType::kF16 ? float_of_f16(half) : std::bit_cast<float>(std::uint32_t{half} << 16);
  }
}

std::optional<std::size_t> first_nonfinite(std::span<const std::byte> data, DType dtype) {
  if (dtype == DType::kF32) {
    return first_with_full_exponent(data, kExponentF32);
  }
  return first_with_full_exponent(data, dtype == DType::kF16 ? kExponentF16 : kExponentBf16);
}

bool is_bf16_exact(std::span<const float> values) {
  std::uint32_t low_bits = 0;
  for (const float value : values) {
    low_bits |= std::bit_cast<std::uint32_t>(value) & kLowHalf;
  }
  return low_bits == 0;
}

void to_bf16(std::span<const float> values, std::span<std::byte> out) {
  for (std::size_t i = 0; i < values.size(); ++i) {
    const auto bits = static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(values[i]) >> 16);
    std::memcpy(out.data() + i * sizeof(bits), &bits, sizeof(bits));
  }
}

void require_finite(std::span<const std::byte> data, DType dtype, const std::string& source,
                    const std::string& tensor) {
  if (const std::optional<std::size_t> bad = first_nonfinite(data, dtype)) {
    throw Error(ErrorCode::kCorrupt, source + ": " + tensor + " holds NaN or infinity at value " +
                                         std::to_string(*bad) +
                                         "; expected finite numbers: export the model again");
  }
}

}  // namespace spel::engine
