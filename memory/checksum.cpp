#include "memory/checksum.h"

#include <array>
#include <bit>
#include <cstring>

namespace spel::memory {
namespace {

static_assert(std::endian::native == std::endian::little, "words are read as they lie in memory");

/// The Castagnoli polynomial, lowest power first.
constexpr std::uint32_t kPolynomial = 0x82f63b78U;
/// Bytes taken at once: a bank of 100,000 notes is 130 MB to check at start.
constexpr std::size_t kSlices = 8;
using Table = std::array<std::array<std::uint32_t, 256>, kSlices>;

constexpr Table make_table() {
  Table table{};
  for (std::uint32_t byte = 0; byte < 256; ++byte) {
    std::uint32_t sum = byte;
    for (int bit = 0; bit < 8; ++bit) {
      sum = (sum >> 1U) ^ ((sum & 1U) != 0 ? kPolynomial : 0U);
    }
    table[0][byte] = sum;
  }
  for (std::size_t slice = 1; slice < kSlices; ++slice) {
    for (std::size_t byte = 0; byte < 256; ++byte) {
      const std::uint32_t before = table[slice - 1][byte];
      table[slice][byte] = (before >> 8U) ^ table[0][before & 0xffU];
    }
  }
  return table;
}
constexpr Table kTable = make_table();

}  // namespace

std::uint32_t crc32c(std::span<const std::byte> bytes, std::uint32_t sum) {
  std::uint32_t rest = ~sum;
  for (; bytes.size() >= kSlices; bytes = bytes.subspan(kSlices)) {
    std::uint64_t word = 0;
    std::memcpy(&word, bytes.data(), sizeof(word));
    word ^= rest;
    rest = 0;
    for (std::size_t slice = 0; slice < kSlices; ++slice) {
      rest ^= kTable[kSlices - 1 - slice][(word >> (8U * slice)) & 0xffU];
    }
  }
  for (const std::byte byte : bytes) {
    rest = (rest >> 8U) ^ kTable[0][(rest ^ static_cast<std::uint32_t>(byte)) & 0xffU];
  }
  return ~rest;
}

}  // namespace spel::memory
