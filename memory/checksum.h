// CRC32C: what tells a damaged row from a good one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace spel::memory {

/// CRC-32C (Castagnoli) of `bytes`, going on from `sum`: checksum of a and then b is
/// crc32c(b, crc32c(a)). Any error of up to 32 bits in a row is seen, which is what a failing
/// medium makes; it is no protection from a person.
[[nodiscard]] std::uint32_t crc32c(std::span<const std::byte> bytes, std::uint32_t sum = 0);

}  // namespace spel::memory
