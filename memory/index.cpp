#include "memory/index.h"

#include <algorithm>
#include <array>
#include <cassert>
#include <cmath>
#include <limits>

namespace spel::memory {
namespace {

static_assert(kAnchors == kBlockRows, "a note's anchors are the rows of one block");

/// Best first; the lower id on a tie, so that the order is the same every time.
bool better(const Match& a, const Match& b) {
  return a.score != b.score ? a.score > b.score : a.id < b.id;
}

void keep_best(std::vector<Match>& matches, std::size_t count) {
  const std::size_t kept = std::min(count, matches.size());
  std::partial_sort(matches.begin(), matches.begin() + static_cast<std::ptrdiff_t>(kept),
                    matches.end(), better);
  matches.resize(kept);
}

/// sums[q][anchor]: the best of, over the places the last token may stand at, the likeness of the
/// query's tokens to the anchors before it. Tokens that fall before the first anchor add nothing.
float align(const float* sums, std::size_t tokens) {
  std::array<float, kAnchors> totals{};
  // Zeros before each row stand for the anchors there are not; fixed lengths make vectors of it.
  std::array<float, 2 * kAnchors> padded{};
  for (std::size_t back = 0; back < tokens; ++back) {
    std::copy_n(sums + (tokens - 1 - back) * kAnchors, kAnchors, padded.begin() + kAnchors);
    const float* shifted = padded.data() + kAnchors - back;
    for (std::size_t last = 0; last < kAnchors; ++last) {
      totals[last] += shifted[last];
    }
  }
  for (std::size_t half = kAnchors / 2; half > 0; half /= 2) {
    for (std::size_t i = 0; i < half; ++i) {
      totals[i] = std::max(totals[i], totals[i + half]);
    }
  }
  return totals[0] / static_cast<float>(tokens);
}

}  // namespace

void SketchIndex::add(NoteId id, std::span<const std::uint16_t> sketch) {
  assert(sketch.size() == kBlock && !slots_.contains(id));
  slots_[id] = ids_.size();
  ids_.push_back(id);
  blocks_.insert(blocks_.end(), sketch.begin(), sketch.end());
}

void SketchIndex::remove(NoteId id) {
  const auto found = slots_.find(id);
  if (found == slots_.end()) {
    return;
  }
  const std::size_t slot = found->second;
  const std::size_t last = ids_.size() - 1;
  std::copy_n(&blocks_[last * kBlock], kBlock, &blocks_[slot * kBlock]);
  ids_[slot] = ids_[last];
  slots_[ids_[slot]] = slot;
  slots_.erase(id);
  ids_.pop_back();
  blocks_.resize(last * kBlock);
}

float SketchIndex::best_alignment(std::size_t slot, std::span<const float> query,
                                  std::size_t dim) const {
  const std::size_t tokens = query.size() / dim;
  std::array<float, kAnchors * kAnchors> sums;  // NOLINT: the first `tokens` rows are written.
  dots_(&blocks_[slot * kBlock], query.data(), tokens, dim, sums.data());
  return align(sums.data(), tokens);
}

std::vector<Match> SketchIndex::search(std::span<const float> query, std::size_t top) const {
  // No alignment is longer than the anchors are.
  const std::size_t tokens = std::min(query.size() / kSketchCoordinates, kAnchors);
  if (tokens == 0) {
    return {};
  }
  const auto all = query.last(tokens * kSketchCoordinates);
  const std::size_t coarse_tokens = std::min(kCoarseTokens, tokens);
  std::vector<float> coarse;
  for (std::size_t t = tokens - coarse_tokens; t < tokens; ++t) {
    const auto sketch = all.subspan(t * kSketchCoordinates, kCoarseCoordinates);
    coarse.insert(coarse.end(), sketch.begin(), sketch.end());
  }
  std::vector<Match> matches(ids_.size());
  for (std::size_t slot = 0; slot < ids_.size(); ++slot) {
    matches[slot] = {static_cast<NoteId>(slot), best_alignment(slot, coarse, kCoarseCoordinates)};
  }
  const std::size_t shortlist = std::min(std::max(kRerank, top), matches.size());
  std::nth_element(matches.begin(), matches.begin() + static_cast<std::ptrdiff_t>(shortlist),
                   matches.end(), [&](const Match& a, const Match& b) {
                     return better({ids_[static_cast<std::size_t>(a.id)], a.score},
                                   {ids_[static_cast<std::size_t>(b.id)], b.score});
                   });
  matches.resize(shortlist);
  for (Match& match : matches) {
    const auto slot = static_cast<std::size_t>(match.id);
    match = {ids_[slot], best_alignment(slot, all, kSketchCoordinates)};
  }
  keep_best(matches, top);
  return matches;
}

void NativeIndex::add(NoteId id, std::span<const std::uint16_t> coordinates) {
  assert(coordinates.size() == dim() && !slots_.contains(id));
  const std::size_t slot = ids_.size();
  if (slot % kBlockRows == 0) {
    blocks_.resize(blocks_.size() + dim() * kBlockRows);
  }
  for (std::size_t i = 0; i < dim(); ++i) {
    at(slot, i) = coordinates[i];
  }
  slots_[id] = slot;
  ids_.push_back(id);
}

void NativeIndex::remove(NoteId id) {
  const auto found = slots_.find(id);
  if (found == slots_.end()) {
    return;
  }
  const std::size_t slot = found->second;
  const std::size_t last = ids_.size() - 1;
  for (std::size_t i = 0; i < dim(); ++i) {
    at(slot, i) = at(last, i);
  }
  ids_[slot] = ids_[last];
  slots_[ids_[slot]] = slot;
  slots_.erase(id);
  ids_.pop_back();
  blocks_.resize((last + kBlockRows - 1) / kBlockRows * dim() * kBlockRows);
}

std::vector<Match> NativeIndex::search(std::span<const float> query, Ranker ranker,
                                       std::size_t top) const {
  assert(query.size() == dim());
  const std::size_t blocks = (ids_.size() + kBlockRows - 1) / kBlockRows;
  std::vector<Match> matches(ids_.size());
  std::vector<Match> winners(channels_, {0, -std::numeric_limits<float>::infinity()});
  std::array<float, kBlockRows> part{};
  for (std::size_t block = 0; block < blocks; ++block) {
    const std::size_t rows = std::min(kBlockRows, ids_.size() - block * kBlockRows);
    for (std::size_t channel = 0; channel < channels_; ++channel) {
      const std::size_t first = channel * kChannelCoordinates;
      dots_(&blocks_[(block * dim() + first) * kBlockRows], &query[first], 1, kChannelCoordinates,
            part.data());
      for (std::size_t row = 0; row < rows; ++row) {
        const std::size_t slot = block * kBlockRows + row;
        matches[slot].id = ids_[slot];
        matches[slot].score += part[row];
        if (better({ids_[slot], part[row]}, winners[channel])) {
          winners[channel] = {ids_[slot], part[row]};
        }
      }
    }
  }
  if (ranker == Ranker::kVotes && !ids_.empty()) {
    // The sum only breaks ties: it is scaled to less than half a vote.
    float largest = 0.0F;
    for (const Match& match : matches) {
      largest = std::max(largest, std::abs(match.score));
    }
    const float scale = largest > 0.0F ? 0.25F / largest : 0.0F;
    for (Match& match : matches) {
      match.score *= scale;
    }
    for (const Match& winner : winners) {
      matches[slots_.at(winner.id)].score += 1.0F;
    }
  }
  keep_best(matches, top);
  return matches;
}

}  // namespace spel::memory
