#include "memory/index.h"

#include <algorithm>
#include <array>
#include <cassert>
#include <cmath>
#include <limits>

#include "kernels/kernels.h"

namespace spel::memory {

void SketchIndex::add(NoteId id, std::uint64_t content, std::span<const std::uint16_t> sketch) {
  assert(sketch.size() == kBlock && !notes_.find(id));
  const std::size_t slot = notes_.size();
  if (slot == pages_.size() * kPageNotes) {
    pages_.push_back(std::make_unique_for_overwrite<Page>());
  }
  std::copy_n(sketch.data(), kBlock, sketch_of(slot));
  make_coarse(sketch, {coarse_of(slot), kCoarseBytes});
  notes_.add(id, content);
}

void SketchIndex::remove(NoteId id) {
  const auto slot = notes_.find(id);
  if (!slot) {
    return;
  }
  const std::size_t last = notes_.size() - 1;
  if (*slot != last) {
    std::copy_n(sketch_of(last), kBlock, sketch_of(*slot));
    std::copy_n(coarse_of(last), kCoarseBytes, coarse_of(*slot));
  }
  notes_.remove(*slot);
  pages_.resize((last + kPageNotes - 1) / kPageNotes);
}

float SketchIndex::best_alignment(std::size_t slot, std::span<const float> query) const {
  const std::size_t tokens = query.size() / kSketchCoordinates;
  return kernels_->bf16_alignment(sketch_of(slot), query.data(), tokens, kSketchCoordinates);
}

// The `count` best, of one content at most kRerankCopies: a note written again and again leaves
// room for the others.
void SketchIndex::keep_candidates(std::vector<Candidate>& candidates, std::size_t count) {
  if (candidates.size() <= count) {
    return;
  }
  const auto ahead = [](const Candidate& a, const Candidate& b) {
    return a.score != b.score ? a.score > b.score : a.id < b.id;
  };
  std::sort(candidates.begin(), candidates.end(), [&](const Candidate& a, const Candidate& b) {
    return a.content != b.content ? a.content < b.content : ahead(a, b);
  });
  std::size_t copies = 0;
  std::size_t kept = 0;
  for (const Candidate& candidate : candidates) {
    copies = kept > 0 && candidates[kept - 1].content == candidate.content ? copies + 1 : 1;
    if (copies <= kRerankCopies) {
      candidates[kept++] = candidate;
    }
  }
  candidates.resize(kept);
  if (kept > count) {
    std::nth_element(candidates.begin(), candidates.begin() + static_cast<std::ptrdiff_t>(count),
                     candidates.end(), ahead);
    candidates.resize(count);
  }
}

std::vector<std::size_t> SketchIndex::shortlist(const CoarseQuery& query, std::size_t count) const {
  std::vector<Candidate> candidates;
  // Whoever is below the worst of `count` already kept need not be looked at again.
  std::int32_t threshold = std::numeric_limits<std::int32_t>::min();
  std::array<std::int32_t, kPageNotes> scores;  // NOLINT: as many as there are notes are written.
  for (std::size_t page = 0; page < pages_.size(); ++page) {
    const std::size_t first = page * kPageNotes;
    const std::size_t notes = std::min(kPageNotes, notes_.size() - first);
    kernels_->coarse_alignments(pages_[page]->coarse.data(), notes, query.front().data(),
                                scores.data());
    for (std::size_t i = 0; i < notes; ++i) {
      if (scores[i] >= threshold) {
        candidates.push_back(
            {scores[i], notes_.id(first + i), notes_.content(first + i), first + i});
      }
    }
    if (candidates.size() >= 2 * count) {
      keep_candidates(candidates, count);
      if (candidates.size() == count) {
        threshold = std::min_element(
                        candidates.begin(), candidates.end(),
                        [](const Candidate& a, const Candidate& b) { return a.score < b.score; })
                        ->score;
      }
    }
  }
  keep_candidates(candidates, count);
  std::vector<std::size_t> slots;
  slots.reserve(candidates.size());
  for (const Candidate& candidate : candidates) {
    slots.push_back(candidate.slot);
  }
  return slots;
}

std::vector<Match> SketchIndex::search(std::span<const float> query, std::size_t top) const {
  // No alignment is longer than the anchors are.
  const std::size_t tokens = std::min(query.size() / kSketchCoordinates, kAnchors);
  if (tokens == 0 || top == 0) {
    return {};
  }
  const auto all = query.last(tokens * kSketchCoordinates);
  CoarseQuery coarse{};
  for (std::size_t back = 0; back < std::min(kernels::kCoarseTokens, tokens); ++back) {
    const auto sketch = all.subspan((tokens - 1 - back) * kSketchCoordinates);
    std::transform(sketch.begin(), sketch.begin() + kernels::kCoarseCoordinates,
                   coarse[kernels::kCoarseTokens - 1 - back].begin(), &to_coarse);
  }
  std::vector<Match> matches;
  for (const std::size_t slot : shortlist(coarse, std::max(kRerank, top))) {
    matches.push_back({notes_.id(slot), best_alignment(slot, all), notes_.content(slot)});
  }
  keep_best(matches, top);
  return matches;
}

void NativeIndex::add(NoteId id, std::uint64_t content,
                      std::span<const std::uint16_t> coordinates) {
  assert(coordinates.size() == dim() && !notes_.find(id));
  const std::size_t slot = notes_.size();
  if (slot % kernels::kLanes == 0) {
    panels_.resize(panels_.size() + dim() * kernels::kLanes);
  }
  for (std::size_t i = 0; i < dim(); ++i) {
    at(slot, i) = coordinates[i];
  }
  notes_.add(id, content);
}

void NativeIndex::remove(NoteId id) {
  const auto slot = notes_.find(id);
  if (!slot) {
    return;
  }
  const std::size_t last = notes_.size() - 1;
  for (std::size_t i = 0; i < dim(); ++i) {
    at(*slot, i) = at(last, i);
  }
  notes_.remove(*slot);
  panels_.resize((last + kernels::kLanes - 1) / kernels::kLanes * dim() * kernels::kLanes);
}

std::vector<Match> NativeIndex::search(std::span<const float> query, Ranker ranker,
                                       std::size_t top) const {
  assert(query.size() == dim());
  const std::size_t panels = (notes_.size() + kernels::kLanes - 1) / kernels::kLanes;
  std::vector<Match> matches(notes_.size());
  for (std::size_t slot = 0; slot < notes_.size(); ++slot) {
    matches[slot] = {notes_.id(slot), 0.0F, notes_.content(slot)};
  }
  std::vector<Match> winners(channels_, {0, -std::numeric_limits<float>::infinity(), 0});
  std::array<float, kernels::kLanes> part{};
  for (std::size_t panel = 0; panel < panels; ++panel) {
    const std::size_t lanes = std::min(kernels::kLanes, notes_.size() - panel * kernels::kLanes);
    for (std::size_t channel = 0; channel < channels_; ++channel) {
      const std::size_t first = channel * kChannelCoordinates;
      kernels_->bf16_dots(&panels_[(panel * dim() + first) * kernels::kLanes], &query[first], 1,
                          kChannelCoordinates, part.data());
      for (std::size_t lane = 0; lane < lanes; ++lane) {
        const std::size_t slot = panel * kernels::kLanes + lane;
        matches[slot].score += part[lane];
        const Match match{notes_.id(slot), part[lane], notes_.content(slot)};
        if (better(match, winners[channel])) {
          winners[channel] = match;
        }
      }
    }
  }
  if (ranker == Ranker::kVotes && !notes_.empty()) {
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
      matches[notes_.find(winner.id).value()].score += 1.0F;
    }
  }
  keep_best(matches, top);
  return matches;
}

}  // namespace spel::memory
