#include "memory/coarse_scan.h"

#include <algorithm>
#include <cstring>

#include "memory/bf16.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace spel::memory {
namespace {

static_assert(kCoarseTokens == 2, "the scans below align two tokens");
static_assert(kAnchors == 16, "one anchor is one 32-bit lane of a 512-bit register");

constexpr std::size_t kGroups = kCoarseCoordinates / kCoarseGroup;
constexpr std::size_t kGroupBytes = kCoarseGroup * kAnchors;
constexpr std::int32_t kOffset = 128;

/// What the offset of the stored coordinates adds to every product with `token`.
std::int32_t excess(const std::array<std::int8_t, kCoarseCoordinates>& token) {
  std::int32_t sum = 0;
  for (const std::int8_t value : token) {
    sum += value;
  }
  return sum * kOffset;
}

void plain(const std::uint8_t* blocks, std::size_t notes, const CoarseQuery& query,
           std::int32_t* scores) {
  for (std::size_t note = 0; note < notes; ++note) {
    const std::uint8_t* block = blocks + note * kCoarseBytes;
    std::array<std::array<std::int32_t, kAnchors>, kCoarseTokens> sums{};
    for (std::size_t token = 0; token < kCoarseTokens; ++token) {
      sums[token].fill(-excess(query[token]));
      for (std::size_t i = 0; i < kCoarseCoordinates; ++i) {
        const std::uint8_t* row = block + i / kCoarseGroup * kGroupBytes + i % kCoarseGroup;
        for (std::size_t anchor = 0; anchor < kAnchors; ++anchor) {
          sums[token][anchor] += row[anchor * kCoarseGroup] * query[token][i];
        }
      }
    }
    std::int32_t best = sums[1][0];
    for (std::size_t anchor = 1; anchor < kAnchors; ++anchor) {
      best = std::max(best, sums[1][anchor] + sums[0][anchor - 1]);
    }
    scores[note] = best;
  }
}

#if defined(__x86_64__)

/// Coordinates 4g, 4g+1, … of a token as one 32-bit word.
std::int32_t group_word(const std::array<std::int8_t, kCoarseCoordinates>& token, std::size_t g) {
  std::int32_t word = 0;
  std::memcpy(&word, &token[g * kCoarseGroup], sizeof(word));
  return word;
}

[[gnu::target("avx2"), gnu::always_inline]] inline std::int32_t largest(__m256i eight) {
  __m128i four = _mm_max_epi32(_mm256_castsi256_si128(eight), _mm256_extracti128_si256(eight, 1));
  four = _mm_max_epi32(four, _mm_shuffle_epi32(four, 0b01001110));
  four = _mm_max_epi32(four, _mm_shuffle_epi32(four, 0b10110001));
  return _mm_cvtsi128_si32(four);
}

/// Asks for what is read some notes later. The hardware's own prefetching stops at the borders of
/// small pages, every sixteen notes. Beyond the last block it asks for nothing that harms.
[[gnu::always_inline]] inline void ask_ahead(const std::uint8_t* block) {
  constexpr std::size_t kAhead = 16 * kCoarseBytes;
  constexpr std::size_t kLine = 64;
  for (std::size_t line = 0; line < kCoarseBytes; line += kLine) {
    _mm_prefetch(reinterpret_cast<const char*>(block) + kAhead + line, _MM_HINT_T0);
  }
}

/// The forms with a mask, all of it set: GCC warns of the others' undefined sources.
constexpr __mmask16 kAllLanes = 0xffff;

[[gnu::target("avx512f,avx512bw,avx512vnni")]] void vnni(const std::uint8_t* blocks,
                                                         std::size_t notes,
                                                         const CoarseQuery& query,
                                                         std::int32_t* scores) {
  __m512i last[kGroups];    // NOLINT(*-avoid-c-arrays): std::array would lose the alignment.
  __m512i before[kGroups];  // NOLINT(*-avoid-c-arrays)
  for (std::size_t g = 0; g < kGroups; ++g) {
    last[g] = _mm512_set1_epi32(group_word(query[1], g));
    before[g] = _mm512_set1_epi32(group_word(query[0], g));
  }
  const __m512i last_start = _mm512_set1_epi32(-excess(query[1]));
  const __m512i before_start = _mm512_set1_epi32(-excess(query[0]));
  for (std::size_t note = 0; note < notes; ++note) {
    const std::uint8_t* block = blocks + note * kCoarseBytes;
    ask_ahead(block);
    __m512i sums = last_start;
    __m512i sums_before = before_start;
    for (std::size_t g = 0; g < kGroups; ++g) {
      const __m512i anchors = _mm512_loadu_si512(block + g * kGroupBytes);
      sums = _mm512_dpbusd_epi32(sums, anchors, last[g]);
      sums_before = _mm512_dpbusd_epi32(sums_before, anchors, before[g]);
    }
    // Each anchor with the one before it; the first has none.
    const __m512i shifted = _mm512_maskz_alignr_epi32(
        kAllLanes, sums_before, _mm512_setzero_si512(), static_cast<int>(kAnchors) - 1);
    const __m512i total = _mm512_maskz_add_epi32(kAllLanes, sums, shifted);
    scores[note] = largest(_mm256_max_epi32(_mm512_maskz_extracti64x4_epi64(0xf, total, 0),
                                            _mm512_maskz_extracti64x4_epi64(0xf, total, 1)));
  }
}

/// The even or the odd coordinates of a group as two 16-bit numbers.
std::int32_t half_word(const std::array<std::int8_t, kCoarseCoordinates>& token,
                       std::size_t first) {
  const std::array<std::int16_t, 2> pair{token[first], token[first + 2]};
  std::int32_t word = 0;
  std::memcpy(&word, pair.data(), sizeof(word));
  return word;
}

[[gnu::target("avx2")]] void avx2(const std::uint8_t* blocks, std::size_t notes,
                                  const CoarseQuery& query, std::int32_t* scores) {
  constexpr std::size_t kHalves = 2;
  __m256i even[kCoarseTokens][kGroups];  // NOLINT(*-avoid-c-arrays)
  __m256i odd[kCoarseTokens][kGroups];   // NOLINT(*-avoid-c-arrays)
  __m256i start[kCoarseTokens];          // NOLINT(*-avoid-c-arrays)
  for (std::size_t token = 0; token < kCoarseTokens; ++token) {
    start[token] = _mm256_set1_epi32(-excess(query[token]));
    for (std::size_t g = 0; g < kGroups; ++g) {
      even[token][g] = _mm256_set1_epi32(half_word(query[token], g * kCoarseGroup));
      odd[token][g] = _mm256_set1_epi32(half_word(query[token], g * kCoarseGroup + 1));
    }
  }
  const __m256i low_bytes = _mm256_set1_epi16(0xff);
  const __m256i up_by_one = _mm256_setr_epi32(7, 0, 1, 2, 3, 4, 5, 6);
  for (std::size_t note = 0; note < notes; ++note) {
    const std::uint8_t* block = blocks + note * kCoarseBytes;
    ask_ahead(block);
    __m256i sums[kCoarseTokens][kHalves] = {// NOLINT(*-avoid-c-arrays)
                                            {start[0], start[0]},
                                            {start[1], start[1]}};
    for (std::size_t g = 0; g < kGroups; ++g) {
      for (std::size_t half = 0; half < kHalves; ++half) {
        const __m256i anchors = _mm256_loadu_si256(
            reinterpret_cast<const __m256i*>(block + g * kGroupBytes + half * sizeof(__m256i)));
        // 16-bit products of single bytes cannot overflow in pairs, as those of the 8-bit
        // multiply-add could.
        const __m256i evens = _mm256_and_si256(anchors, low_bytes);
        const __m256i odds = _mm256_srli_epi16(anchors, 8);
        for (std::size_t token = 0; token < kCoarseTokens; ++token) {
          sums[token][half] = _mm256_add_epi32(
              sums[token][half], _mm256_add_epi32(_mm256_madd_epi16(evens, even[token][g]),
                                                  _mm256_madd_epi16(odds, odd[token][g])));
        }
      }
    }
    // Each anchor with the one before it; the first has none.
    const __m256i low = _mm256_permutevar8x32_epi32(sums[0][0], up_by_one);
    const __m256i high = _mm256_permutevar8x32_epi32(sums[0][1], up_by_one);
    const __m256i first = _mm256_blend_epi32(low, _mm256_setzero_si256(), 1);
    const __m256i second = _mm256_blend_epi32(high, low, 1);
    const __m256i best =
        _mm256_max_epi32(_mm256_add_epi32(sums[1][0], first), _mm256_add_epi32(sums[1][1], second));
    scores[note] = largest(best);
  }
}

#endif

struct Scans {
  std::array<CoarseScan, 3> list{&plain, nullptr, nullptr};
  std::size_t count = 1;
};

Scans find_scans() {
  Scans scans;
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx2")) {
    scans.list[scans.count++] = &avx2;
  }
  if (__builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vnni")) {
    scans.list[scans.count++] = &vnni;
  }
#endif
  return scans;
}

}  // namespace

std::int8_t to_coarse(float coordinate) noexcept {
  constexpr float kScale = 254.0F;
  constexpr float kLargest = 127.0F;
  const float scaled = std::clamp(coordinate * kScale, -kLargest, kLargest);
  return static_cast<std::int8_t>(scaled + (scaled < 0.0F ? -0.5F : 0.5F));
}

void make_coarse(std::span<const std::uint16_t> sketch, std::span<std::uint8_t> out) noexcept {
  for (std::size_t i = 0; i < kCoarseCoordinates; ++i) {
    for (std::size_t anchor = 0; anchor < kAnchors; ++anchor) {
      const std::size_t at =
          i / kCoarseGroup * kGroupBytes + anchor * kCoarseGroup + i % kCoarseGroup;
      out[at] =
          static_cast<std::uint8_t>(to_coarse(from_bf16(sketch[i * kAnchors + anchor])) + kOffset);
    }
  }
}

std::span<const CoarseScan> coarse_scans() noexcept {
  static const Scans scans = find_scans();
  return {scans.list.data(), scans.count};
}

}  // namespace spel::memory
