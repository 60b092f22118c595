// Passages: a text cut into pieces that are found by what stands in them, so that nothing written
// is out of reach.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "memory/note.h"

namespace spel::memory {

/// Short sentences share a passage up to here …
inline constexpr std::size_t kPassageTokens = 48;
/// … and one sentence, or a text of this length, is never cut.
inline constexpr std::size_t kPassageTokensMax = 128;
/// What has no end of a sentence for so long is cut into windows, each beginning in the middle of
/// the one before: whatever is at most half a window long stands whole in one of them.
inline constexpr std::size_t kWindowTokens = 64;

/// Where a passage lies in its text.
struct Passage {
  std::uint64_t start = 0;
  std::size_t tokens = 0;
};

/// The bytes a token stands for.
using TokenBytes = std::function<std::string(TokenId)>;

/// Covers `text` without a gap and in order.
[[nodiscard]] std::vector<Passage> split_passages(std::span<const TokenId> text,
                                                  const TokenBytes& bytes);

/// Appends notes for the passages of `text`, whose first token is number `first` of all that is
/// written, that are not whole inside a note already in `notes`. They have no sketch and no
/// coordinates. With `last` false more follows: returns the number of the token the next part must
/// begin with, so that no sentence is cut between them.
[[nodiscard]] std::uint64_t add_passages(std::span<const TokenId> text, std::uint64_t first,
                                         bool last, const TokenBytes& bytes,
                                         std::vector<NoteDraft>& notes);

}  // namespace spel::memory
