#include "engine/files/sha256.h"

#include <algorithm>
#include <bit>
#include <cstring>

#if defined(__x86_64__)
#include <cpuid.h>
#include <immintrin.h>
#endif

namespace spel::engine {
namespace {

constexpr std::array<std::uint32_t, 64> kRoundConstants = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

std::uint32_t big_endian_word(const std::byte* p) {
  return std::to_integer<std::uint32_t>(p[0]) << 24 | std::to_integer<std::uint32_t>(p[1]) << 16 |
         std::to_integer<std::uint32_t>(p[2]) << 8 | std::to_integer<std::uint32_t>(p[3]);
}

void compress_block(std::array<std::uint32_t, 8>& state, const std::byte* block) {
  std::array<std::uint32_t, 64> w;
  for (std::size_t i = 0; i < 16; ++i) {
    w[i] = big_endian_word(block + 4 * i);
  }
  for (std::size_t i = 16; i < 64; ++i) {
    const std::uint32_t s0 = std::rotr(w[i - 15], 7) ^ std::rotr(w[i - 15], 18) ^ (w[i - 15] >> 3);
    const std::uint32_t s1 = std::rotr(w[i - 2], 17) ^ std::rotr(w[i - 2], 19) ^ (w[i - 2] >> 10);
    w[i] = w[i - 16] + s0 + w[i - 7] + s1;
  }
  auto [a, b, c, d, e, f, g, h] = state;
  for (std::size_t i = 0; i < 64; ++i) {
    const std::uint32_t s1 = std::rotr(e, 6) ^ std::rotr(e, 11) ^ std::rotr(e, 25);
    const std::uint32_t choice = g ^ (e & (f ^ g));
    const std::uint32_t t1 = h + s1 + choice + kRoundConstants[i] + w[i];
    const std::uint32_t s0 = std::rotr(a, 2) ^ std::rotr(a, 13) ^ std::rotr(a, 22);
    const std::uint32_t majority = (a & b) | (c & (a | b));
    h = g;
    g = f;
    f = e;
    e = d + t1;
    d = c;
    c = b;
    b = a;
    a = t1 + s0 + majority;
  }
  const std::array<std::uint32_t, 8> add = {a, b, c, d, e, f, g, h};
  for (std::size_t i = 0; i < 8; ++i) {
    state[i] += add[i];
  }
}

void compress_portable(std::array<std::uint32_t, 8>& state, const std::byte* data,
                       std::size_t blocks) {
  for (std::size_t i = 0; i < blocks; ++i) {
    compress_block(state, data + 64 * i);
  }
}

#if defined(__x86_64__)

bool has_sha_instructions() {
  constexpr unsigned kLeaf = 7;
  constexpr unsigned kShaBit = 1U << 29;    // CPUID.7.0:EBX
  constexpr unsigned kSse41Bit = 1U << 19;  // CPUID.1:ECX
  unsigned a = 0;
  unsigned b = 0;
  unsigned c = 0;
  unsigned d = 0;
  const bool sha = __get_cpuid_count(kLeaf, 0, &a, &b, &c, &d) != 0 && (b & kShaBit) != 0;
  const bool sse41 = __get_cpuid(1, &a, &b, &c, &d) != 0 && (c & kSse41Bit) != 0;
  return sha && sse41;
}

/// The instructions want the state as (a, b, e, f) and (c, d, g, h), high word first.
__attribute__((target("sha,sse4.1"))) void compress_x86(std::array<std::uint32_t, 8>& state,
                                                        const std::byte* data, std::size_t blocks) {
  auto* const words = reinterpret_cast<__m128i*>(state.data());
  const __m128i big_endian = _mm_set_epi64x(0x0c0d0e0f08090a0bLL, 0x0405060700010203LL);
  const __m128i cdab = _mm_shuffle_epi32(_mm_loadu_si128(words), 0xB1);
  const __m128i efgh = _mm_shuffle_epi32(_mm_loadu_si128(words + 1), 0x1B);
  __m128i abef = _mm_alignr_epi8(cdab, efgh, 8);
  __m128i cdgh = _mm_blend_epi16(efgh, cdab, 0xF0);
  for (std::size_t block = 0; block < blocks; ++block) {
    const auto* const input = reinterpret_cast<const __m128i*>(data + 64 * block);
    const __m128i abef_before = abef;
    const __m128i cdgh_before = cdgh;
    __m128i w[16];  // Four message words each.
    for (std::size_t i = 0; i < 16; ++i) {
      if (i < 4) {
        w[i] = _mm_shuffle_epi8(_mm_loadu_si128(input + i), big_endian);
      } else {
        const __m128i partial = _mm_add_epi32(_mm_sha256msg1_epu32(w[i - 4], w[i - 3]),
                                              _mm_alignr_epi8(w[i - 1], w[i - 2], 4));
        w[i] = _mm_sha256msg2_epu32(partial, w[i - 1]);
      }
      const auto* const constants =
          reinterpret_cast<const __m128i*>(kRoundConstants.data() + 4 * i);
      const __m128i sum = _mm_add_epi32(w[i], _mm_loadu_si128(constants));
      cdgh = _mm_sha256rnds2_epu32(cdgh, abef, sum);
      abef = _mm_sha256rnds2_epu32(abef, cdgh, _mm_shuffle_epi32(sum, 0x0E));
    }
    abef = _mm_add_epi32(abef, abef_before);
    cdgh = _mm_add_epi32(cdgh, cdgh_before);
  }
  const __m128i feba = _mm_shuffle_epi32(abef, 0x1B);
  const __m128i dchg = _mm_shuffle_epi32(cdgh, 0xB1);
  _mm_storeu_si128(words, _mm_blend_epi16(feba, dchg, 0xF0));
  _mm_storeu_si128(words + 1, _mm_alignr_epi8(dchg, feba, 8));
}

#endif

}  // namespace

Sha256::Sha256(Sha256Code code) : compress_(compress_portable) {
#if defined(__x86_64__)
  if (code == Sha256Code::kFastest && has_sha_instructions()) {
    compress_ = compress_x86;
  }
#else
  (void)code;  // No other code here.
#endif
}

void Sha256::update(std::span<const std::byte> bytes) {
  if (bytes.empty()) {
    return;
  }
  total_bytes_ += bytes.size();
  if (pending_size_ > 0) {
    const std::size_t take = std::min(bytes.size(), kBlockBytes - pending_size_);
    std::memcpy(pending_.data() + pending_size_, bytes.data(), take);
    pending_size_ += take;
    bytes = bytes.subspan(take);
    if (pending_size_ < kBlockBytes) {
      return;
    }
    compress_(state_, pending_.data(), 1);
    pending_size_ = 0;
  }
  const std::size_t blocks = bytes.size() / kBlockBytes;
  compress_(state_, bytes.data(), blocks);
  bytes = bytes.subspan(blocks * kBlockBytes);
  if (!bytes.empty()) {
    std::memcpy(pending_.data(), bytes.data(), bytes.size());
    pending_size_ = bytes.size();
  }
}

void Sha256::update(std::string_view text) { update(std::as_bytes(std::span(text))); }

std::string Sha256::finish_hex() {
  static constexpr char kHex[] = "0123456789abcdef";
  const std::uint64_t bits = total_bytes_ * 8;
  // One 1 bit, zeros up to eight bytes short of a block, then the length.
  const std::size_t zeros = (kBlockBytes + 55 - pending_size_) % kBlockBytes;
  std::array<std::byte, kBlockBytes + 9> tail{};
  tail[0] = std::byte{0x80};
  for (std::size_t i = 0; i < 8; ++i) {
    tail[1 + zeros + i] = static_cast<std::byte>((bits >> (56 - 8 * i)) & 0xFF);
  }
  update(std::span<const std::byte>(tail).first(1 + zeros + 8));
  std::string hex;
  for (const std::uint32_t word : state_) {
    for (int shift = 28; shift >= 0; shift -= 4) {
      hex.push_back(kHex[(word >> shift) & 0xF]);
    }
  }
  return hex;
}

std::string sha256_hex(std::span<const std::byte> bytes) {
  Sha256 hash;
  hash.update(bytes);
  return hash.finish_hex();
}

std::string sha256_hex(std::string_view text) { return sha256_hex(std::as_bytes(std::span(text))); }

}  // namespace spel::engine
