// What a search finds, and the order it comes in.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "memory/note.h"

namespace spel::memory {

struct Match {
  NoteId id = 0;
  float score = 0.0F;
  std::uint64_t content = 0;  ///< The same for notes of the same tokens.
};

/// The same for the same tokens; for others the same only by chance, which 64 bits make small.
[[nodiscard]] std::uint64_t content_of(std::span<const TokenId> tokens) noexcept;

/// Best first; the lower id on a tie, so that the order is the same every time.
[[nodiscard]] inline bool better(const Match& a, const Match& b) noexcept {
  return a.score != b.score ? a.score > b.score : a.id < b.id;
}

/// Leaves the `count` best in order, of those of the same content only the best: copies take
/// nobody's place.
void keep_best(std::vector<Match>& matches, std::size_t count);

}  // namespace spel::memory
