#include "memory/match.h"

#include <algorithm>
#include <unordered_set>
#include <utility>

namespace spel::memory {

std::uint64_t content_of(std::span<const TokenId> tokens) noexcept {
  // FNV-1a by tokens, and splitmix64's last steps, so that every bit counts.
  std::uint64_t hash = 0xcbf29ce484222325ULL;
  for (const TokenId token : tokens) {
    hash = (hash ^ static_cast<std::uint32_t>(token)) * 0x100000001b3ULL;
    hash ^= hash >> 29U;
  }
  hash = (hash ^ (hash >> 30U)) * 0xbf58476d1ce4e5b9ULL;
  return hash ^ (hash >> 27U);
}

void keep_best(std::vector<Match>& matches, std::size_t count) {
  // A heap gives them best first for as long as they are wanted, and no longer.
  const auto worse = [](const Match& a, const Match& b) { return better(b, a); };
  std::make_heap(matches.begin(), matches.end(), worse);
  std::vector<Match> kept;
  std::unordered_set<std::uint64_t> seen;
  for (auto end = matches.end(); end != matches.begin() && kept.size() < count; --end) {
    std::pop_heap(matches.begin(), end, worse);
    const Match& best = *(end - 1);
    if (seen.insert(best.content).second) {
      kept.push_back(best);
    }
  }
  matches = std::move(kept);
}

}  // namespace spel::memory
