#include "memory/writer.h"

#include <algorithm>
#include <array>
#include <cassert>
#include <string>
#include <utility>

#include "config/base/error.h"
#include "kernels/kernels.h"
#include "memory/bf16.h"

namespace spel::memory {
namespace {

struct Candidate {
  std::uint64_t window = 0;  ///< First of kAnchors tokens.
  std::uint64_t peak = 0;
  float score = 0.0F;
};

}  // namespace

Writer::Writer(const Projection& projection, const WriterOptions& options)
    : projection_(projection), options_(options) {
  if (options.span_tokens < kAnchors || options.notes_per_chunk == 0) {
    throw Error(ErrorCode::kInvalidArgument,
                "a note needs at least " + std::to_string(kAnchors) +
                    " tokens and a chunk at least one note; asked for " +
                    std::to_string(options.span_tokens) + " and " +
                    std::to_string(options.notes_per_chunk));
  }
}

void Writer::add(const CapturedChunk& chunk, std::vector<NoteDraft>& notes) {
  assert(!chunk.tokens.empty() && chunk.tokens.size() <= kChunkTokens);
  assert(chunk.keys.size() == chunk.tokens.size() * projection_.shape().width());
  next_ = measure(chunk);
  tokens_ += chunk.tokens.size();
  ++chunks_;
  choose(notes);
}

void Writer::finish(std::vector<NoteDraft>& notes) { choose(notes); }

Writer::Chunk Writer::measure(const CapturedChunk& chunk) const {
  const ChannelShape& shape = projection_.shape();
  const std::size_t width = shape.width();
  Chunk result;
  result.first = tokens_;
  result.tokens.assign(chunk.tokens.begin(), chunk.tokens.end());
  result.keys.assign(chunk.keys.begin(), chunk.keys.end());
  const kernels::Kernels& kernels = projection_.kernels();
  std::vector<float> mean(width);
  for (std::size_t t = 0; t < chunk.tokens.size(); ++t) {
    kernels.add(mean.data(), &chunk.keys[t * width], width);
  }
  kernels.unit_rows(mean.data(), shape.channels, shape.head_dim);
  result.distinctiveness.resize(chunk.tokens.size());
  kernels.ordered_dots(chunk.keys.data(), width, chunk.tokens.size(), mean.data(), width,
                       result.distinctiveness.data());
  for (float& value : result.distinctiveness) {
    value = 1.0F - value / static_cast<float>(shape.channels);
  }
  return result;
}

const Writer::Chunk& Writer::chunk_of(std::uint64_t token) const {
  if (next_ && token >= next_->first) {
    return *next_;
  }
  return token >= current_->first ? *current_ : *previous_;
}

float Writer::distinctiveness(std::uint64_t token) const {
  const Chunk& chunk = chunk_of(token);
  return chunk.distinctiveness[token - chunk.first];
}

std::span<const float> Writer::keys(std::uint64_t token) const {
  const Chunk& chunk = chunk_of(token);
  const std::size_t width = projection_.shape().width();
  return std::span(chunk.keys).subspan((token - chunk.first) * width, width);
}

// Decides the current chunk, then moves on by one.
void Writer::choose(std::vector<NoteDraft>& notes) {
  if (current_) {
    const std::uint64_t end = current_->first + current_->tokens.size();
    std::vector<Candidate> candidates;
    for (std::uint64_t window = current_->first; window < end; ++window) {
      // A window may end in the next chunk, but not beyond the text.
      const std::uint64_t window_end = std::min<std::uint64_t>(window + kAnchors, tokens_);
      Candidate candidate{window, window, 0.0F};
      for (std::uint64_t t = window; t < window_end; ++t) {
        candidate.score += distinctiveness(t) / static_cast<float>(kAnchors);
        if (distinctiveness(t) > distinctiveness(candidate.peak)) {
          candidate.peak = t;
        }
      }
      if (options_.score == SpanScore::kPeak) {
        const std::uint64_t back = std::min<std::uint64_t>(kAnchors / 2, window);
        const std::uint64_t start = std::max(window - back, current_->first);
        candidate = {start, window, distinctiveness(window)};
      }
      candidates.push_back(candidate);
    }
    std::stable_sort(candidates.begin(), candidates.end(),
                     [](const Candidate& a, const Candidate& b) { return a.score > b.score; });
    std::vector<std::uint64_t> chosen;
    for (const Candidate& candidate : candidates) {
      if (chosen.size() == options_.notes_per_chunk) {
        break;
      }
      // Only inside the chunk: a window of the chunk before may hold the beginning of what belongs
      // here, and two notes of one fact are better than none that begins with it.
      const bool overlaps = std::any_of(chosen.begin(), chosen.end(), [&](std::uint64_t other) {
        return candidate.window < other + kAnchors && other < candidate.window + kAnchors;
      });
      if (overlaps) {
        continue;
      }
      chosen.push_back(candidate.window);
      notes.push_back(make_note(candidate.window, candidate.peak, candidate.score));
    }
  }
  previous_ = std::move(current_);
  current_ = std::move(next_);
  next_.reset();
}

NoteDraft Writer::make_note(std::uint64_t window, std::uint64_t peak, float score) const {
  NoteDraft note;
  // As much before the window as after it, cut at the text's ends and at what is still in memory.
  const std::uint64_t before = (options_.span_tokens - kAnchors) / 2;
  const std::uint64_t oldest = previous_ ? previous_->first : current_->first;
  const std::uint64_t middle = std::max(window - std::min(window, before), oldest);
  const std::uint64_t end = std::min<std::uint64_t>(middle + options_.span_tokens, tokens_);
  // At the text's end what it lacks there is taken from before: a short text is kept whole.
  note.start = std::max(end - std::min<std::uint64_t>(end, options_.span_tokens), oldest);
  for (std::uint64_t t = note.start; t < end; ++t) {
    const Chunk& chunk = chunk_of(t);
    note.tokens.push_back(chunk.tokens[t - chunk.first]);
  }
  note.score = score;

  std::vector<float> coordinates(projection_.shape().channels * kChannelCoordinates);
  projection_.coordinates(keys(peak), coordinates);
  for (const float value : coordinates) {
    note.coordinates.push_back(to_bf16(value));
  }
  // Anchors the text no longer has are zero: they are like nothing.
  note.sketch.resize(kSketchCoordinates * kAnchors);
  std::array<float, kSketchCoordinates> sketch{};
  const std::uint64_t first =
      std::max(window - std::min<std::uint64_t>(window, kAnchorLead), oldest);
  for (std::size_t anchor = 0; anchor < kAnchors && first + anchor < tokens_; ++anchor) {
    projection_.sketch(keys(first + anchor), sketch);
    for (std::size_t i = 0; i < kSketchCoordinates; ++i) {
      note.sketch[i * kAnchors + anchor] = to_bf16(sketch[i]);
    }
  }
  return note;
}

}  // namespace spel::memory
