// Element-wise reading of tensor bytes: conversion to f32 and the search for values that are not
// finite numbers.
#pragma once

#include <cstddef>
#include <optional>
#include <span>

#include "engine/files/safetensors.h"

namespace spel::engine {

/// The values of F32, BF16 or F16 data, which need not be aligned. `out` has one float per element.
void to_float(std::span<const std::byte> data, DType dtype, std::span<float> out);

/// Index of the first NaN or infinity in F32, BF16 or F16 data.
[[nodiscard]] std::optional<std::size_t> first_nonfinite(std::span<const std::byte> data,
                                                         DType dtype);

/// Whether every value survives rounding to bf16 unchanged.
[[nodiscard]] bool is_bf16_exact(std::span<const float> values);

/// The bf16 bytes of values for which is_bf16_exact() holds.
void to_bf16(std::span<const float> values, std::span<std::byte> out);

/// Throws Error(kCorrupt) naming `source`, `tensor` and the place of the first NaN or infinity.
void require_finite(std::span<const std::byte> data, DType dtype, const std::string& source,
                    const std::string& tensor);

}  // namespace spel::engine
