// Which instruction set the kernels run on: detected once, or forced.
#pragma once

#include <optional>
#include <span>
#include <string_view>

namespace spel::kernels {

enum class Isa { kScalar, kNeon, kAvx2, kAvx512 };

/// "scalar", "neon", "avx2", "avx512".
[[nodiscard]] std::string_view isa_name(Isa isa);

/// The inverse of isa_name(); nullopt for any other word.
[[nodiscard]] std::optional<Isa> parse_isa(std::string_view name);

/// Targets this binary contains and this processor can run, best first. Never empty.
[[nodiscard]] std::span<const Isa> attainable_isas();

}  // namespace spel::kernels
