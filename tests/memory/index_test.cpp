// Addressing: the right note first, the same order every time, the same bits on every processor.
#include "memory/index.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <gtest/gtest.h>
#include <iterator>
#include <limits>
#include <random>
#include <vector>

#include "kernels/kernels.h"
#include "memory/bf16.h"
#include "memory/coarse_sketch.h"
#include "memory/projection.h"

namespace spel::memory {
namespace {

std::vector<float> unit(std::mt19937& random, std::size_t size) {
  std::normal_distribution<float> normal;
  std::vector<float> values(size);
  float squares = 0.0F;
  for (float& value : values) {
    value = normal(random);
    squares += value * value;
  }
  for (float& value : values) {
    value /= std::sqrt(squares);
  }
  return values;
}

/// A note of random anchors; `anchors` gets them, oldest first.
std::vector<std::uint16_t> random_sketch(std::mt19937& random, std::vector<float>& anchors) {
  std::vector<std::uint16_t> sketch(kSketchCoordinates * kAnchors);
  anchors.clear();
  for (std::size_t anchor = 0; anchor < kAnchors; ++anchor) {
    const auto values = unit(random, kSketchCoordinates);
    anchors.insert(anchors.end(), values.begin(), values.end());
    for (std::size_t i = 0; i < kSketchCoordinates; ++i) {
      sketch[i * kAnchors + anchor] = to_bf16(values[i]);
    }
  }
  return sketch;
}

/// Notes of other tokens than all others.
std::uint64_t content(NoteId id) { return static_cast<std::uint64_t>(id); }

TEST(SketchIndex, FindsTheNoteTheQueryIsAPieceOf) {
  std::mt19937 random(1);
  SketchIndex index(kernels::Kernels::select());
  std::vector<std::vector<float>> all(1000);
  for (NoteId id = 1; id <= 1000; ++id) {
    index.add(id, content(id), random_sketch(random, all[static_cast<std::size_t>(id - 1)]));
  }
  for (const std::size_t wanted : {0U, 17U, 999U}) {
    const auto query =
        std::span(all[wanted]).subspan(3 * kSketchCoordinates, 8 * kSketchCoordinates);
    const auto matches = index.search(query, 2);
    ASSERT_EQ(matches.size(), 2U);
    EXPECT_EQ(matches[0].id, static_cast<NoteId>(wanted + 1));
    EXPECT_NEAR(matches[0].score, 1.0F, 0.01F);
    EXPECT_LT(matches[1].score, 0.8F);
  }
}

TEST(SketchIndex, EqualNotesComeInTheOrderOfTheirIdsWhateverWasRemoved) {
  std::mt19937 random(2);
  std::vector<float> anchors;
  const auto sketch = random_sketch(random, anchors);
  SketchIndex index(kernels::Kernels::select());
  for (NoteId id = 1; id <= 40; ++id) {
    index.add(id, content(id), sketch);
  }
  for (const NoteId id : {1, 3, 40, 20}) {
    index.remove(id);
  }
  index.remove(99);
  const auto matches = index.search(std::span(anchors).first(4 * kSketchCoordinates), 5);
  std::vector<NoteId> ids;
  for (const Match& match : matches) {
    ids.push_back(match.id);
  }
  EXPECT_EQ(ids, (std::vector<NoteId>{2, 4, 5, 6, 7}));
  EXPECT_EQ(index.size(), 36U);
}

TEST(SketchIndex, CopiesOfOneNoteTakeNobodysPlace) {
  // More copies than are looked at closely, each a better match than any other note.
  constexpr NoteId kCopies = 4 * SketchIndex::kRerank;
  std::mt19937 random(9);
  std::vector<float> anchors;
  const auto sketch = random_sketch(random, anchors);
  const std::vector<float> query(anchors.begin(), anchors.begin() + 8 * kSketchCoordinates);
  SketchIndex index(kernels::Kernels::select());
  for (NoteId id = 1; id <= kCopies; ++id) {
    index.add(id, 1, sketch);
  }
  for (NoteId id = kCopies + 1; id <= kCopies + 5; ++id) {
    index.add(id, content(id), random_sketch(random, anchors));
  }
  const auto matches = index.search(query, 6);
  ASSERT_EQ(matches.size(), 6U);
  EXPECT_EQ(matches[0].id, 1);
  for (std::size_t i = 1; i < matches.size(); ++i) {
    EXPECT_GT(matches[i].id, kCopies);
  }
}

TEST(SketchIndex, AnEmptyIndexOrQueryFindsNothing) {
  SketchIndex index(kernels::Kernels::select());
  const std::vector<float> query(kSketchCoordinates);
  EXPECT_TRUE(index.search(query, 2).empty());
  EXPECT_TRUE(index.search({}, 2).empty());
}

// More notes than a page holds, and a first round that must let nobody better go: with a shortlist
// as long as the index the second round judges all.
TEST(SketchIndex, ASearchOfManyFindsWhatASearchOfEachFinds) {
  constexpr NoteId kNotes = 5000;
  constexpr std::size_t kTop = 5;
  std::mt19937 random(6);
  SketchIndex index(kernels::Kernels::select());
  std::vector<float> anchors;
  std::vector<float> query;
  for (NoteId id = 1; id <= kNotes; ++id) {
    index.add(id, content(id), random_sketch(random, anchors));
    if (id == 1500) {
      query.assign(anchors.begin() + 2 * kSketchCoordinates,
                   anchors.begin() + 10 * kSketchCoordinates);
    }
  }
  const auto matches = index.search(query, kTop);
  const auto all = index.search(query, kNotes);
  ASSERT_EQ(all.size(), static_cast<std::size_t>(kNotes));
  EXPECT_EQ(matches.front().id, 1500);
  EXPECT_EQ(all.front().id, 1500);
  EXPECT_EQ(all.front().score, matches.front().score);
  EXPECT_TRUE(std::is_sorted(all.begin(), all.end(), [](const Match& a, const Match& b) {
    return a.score != b.score ? a.score > b.score : a.id < b.id;
  }));
  // Whatever is removed before it, across pages, it is found, and nothing else moves.
  for (NoteId id = 1; id <= kNotes; ++id) {
    if (id % 3 != 0) {
      index.remove(id);
    }
  }
  EXPECT_EQ(index.size(), static_cast<std::size_t>(kNotes) / 3);
  std::vector<Match> left;
  std::copy_if(all.begin(), all.end(), std::back_inserter(left),
               [](const Match& match) { return match.id % 3 == 0; });
  const auto remaining = index.search(query, kNotes);
  ASSERT_EQ(remaining.size(), left.size());
  for (std::size_t i = 0; i < left.size(); ++i) {
    EXPECT_EQ(remaining[i].id, left[i].id);
    EXPECT_EQ(remaining[i].score, left[i].score);
  }
}

TEST(CoarseSketch, AScoreIsTheBestOfTheAlignments) {
  std::mt19937 random(8);
  std::vector<float> anchors;
  const auto sketch = random_sketch(random, anchors);
  std::vector<std::uint8_t> block(kCoarseBytes);
  make_coarse(sketch, block);
  CoarseQuery query{};
  for (std::size_t i = 0; i < kernels::kCoarseCoordinates; ++i) {
    query[0][i] = to_coarse(anchors[4 * kSketchCoordinates + i]);
    query[1][i] = to_coarse(anchors[5 * kSketchCoordinates + i]);
  }
  std::int32_t expected = std::numeric_limits<std::int32_t>::min();
  for (std::size_t last = 0; last < kAnchors; ++last) {
    std::int32_t sum = 0;
    for (std::size_t i = 0; i < kernels::kCoarseCoordinates; ++i) {
      const auto coarse = [&](std::size_t anchor) {
        return to_coarse(from_bf16(sketch[i * kAnchors + anchor]));
      };
      sum += query[1][i] * coarse(last) + (last > 0 ? query[0][i] * coarse(last - 1) : 0);
    }
    expected = std::max(expected, sum);
  }
  std::int32_t found = 0;
  kernels::Kernels::select().coarse_alignments(block.data(), 1, query.front().data(), &found);
  EXPECT_EQ(found, expected);
  EXPECT_EQ(to_coarse(0.9F), 127);
  EXPECT_EQ(to_coarse(-0.9F), -127);
  EXPECT_EQ(to_coarse(0.1F), 25);
  EXPECT_EQ(to_coarse(-0.1F), -25);
}

/// What searches and projections of random banks come to, to the bit.
std::vector<float> found_by(const kernels::Kernels& kernels) {
  constexpr std::size_t kChannels = 5;
  constexpr ChannelShape kShape{kChannels, 48};
  std::mt19937 random(10);
  std::vector<float> found;
  const auto keep = [&](const std::vector<Match>& matches) {
    for (const Match& match : matches) {
      found.push_back(static_cast<float>(match.id));
      found.push_back(match.score);
    }
  };
  SketchIndex sketches(kernels);
  NativeIndex native(kernels, kChannels);
  std::vector<float> anchors;
  for (NoteId id = 1; id <= 2500; ++id) {
    sketches.add(id, content(id), random_sketch(random, anchors));
  }
  for (NoteId id = 1; id <= 50; ++id) {
    std::vector<std::uint16_t> coordinates;
    for (const float value : unit(random, kChannels * kChannelCoordinates)) {
      coordinates.push_back(to_bf16(value));
    }
    native.add(id, content(id), coordinates);
  }
  const Projection projection(kernels, kShape);
  for (const std::size_t tokens : {1U, 2U, 8U, 16U, 20U}) {
    keep(sketches.search(unit(random, tokens * kSketchCoordinates), 300));
    const auto keys = unit(random, kShape.width());
    std::vector<float> coordinates(kChannels * kChannelCoordinates);
    projection.coordinates(keys, coordinates);
    keep(native.search(coordinates, Ranker::kNative, 50));
    keep(native.search(coordinates, Ranker::kVotes, 50));
    std::vector<float> sketch(kSketchCoordinates);
    projection.sketch(keys, sketch);
    found.insert(found.end(), sketch.begin(), sketch.end());
  }
  return found;
}

TEST(Index, EveryKernelSetFindsTheSameWithTheSameScores) {
  const std::vector<float> expected = found_by(kernels::Kernels::select(kernels::Isa::kScalar));
  for (const kernels::Isa isa : kernels::attainable_isas()) {
    EXPECT_EQ(found_by(kernels::Kernels::select(isa)), expected) << kernels::isa_name(isa);
  }
}

TEST(NativeIndex, RanksBySumAndByVotesAndKeepsBothAfterARemoval) {
  constexpr std::size_t kChannels = 3;
  NativeIndex index(kernels::Kernels::select(), kChannels);
  const auto add = [&](NoteId id, const std::vector<float>& by_channel) {
    std::vector<std::uint16_t> coordinates(kChannels * kChannelCoordinates);
    for (std::size_t channel = 0; channel < kChannels; ++channel) {
      coordinates[channel * kChannelCoordinates] = to_bf16(by_channel[channel]);
    }
    index.add(id, content(id), coordinates);
  };
  add(1, {0.0F, 0.0F, 1.0F});
  add(2, {0.5F, 0.5F, 0.0F});
  add(3, {0.4F, 0.4F, 0.9F});
  for (NoteId id = 4; id < 20; ++id) {
    add(id, {-1.0F, -1.0F, -1.0F});
  }
  std::vector<float> query(kChannels * kChannelCoordinates);
  for (std::size_t channel = 0; channel < kChannels; ++channel) {
    query[channel * kChannelCoordinates] = 1.0F;
  }
  EXPECT_EQ(index.search(query, Ranker::kNative, 1).front().id, 3);
  EXPECT_EQ(index.search(query, Ranker::kVotes, 1).front().id, 2);
  index.remove(3);
  EXPECT_EQ(index.search(query, Ranker::kNative, 2).front().id, 1);
  EXPECT_EQ(index.size(), 18U);
}

TEST(Projection, KeepsLikenessOfKeysAndEqualityExactly) {
  const Projection projection(kernels::Kernels::select(), {54, 64});
  std::mt19937 random(4);
  const auto key = unit(random, 54 * 64);
  std::vector<float> a(kSketchCoordinates);
  std::vector<float> b(kSketchCoordinates);
  projection.sketch(key, a);
  projection.sketch(key, b);
  EXPECT_EQ(a, b);
  float squares = 0.0F;
  for (const float value : a) {
    squares += value * value;
  }
  EXPECT_NEAR(squares, 1.0F, 1e-5F);
}

TEST(SketchIndex, TenThousandNotesAreSearchedFast) {
  std::mt19937 random(5);
  std::vector<float> anchors;
  SketchIndex index(kernels::Kernels::select());
  for (NoteId id = 1; id <= 10'000; ++id) {
    index.add(id, content(id), random_sketch(random, anchors));
  }
  std::vector<double> milliseconds;
  for (int run = 0; run < 21; ++run) {
    const auto begin = std::chrono::steady_clock::now();
    (void)index.search(std::span(anchors).first(8 * kSketchCoordinates), 2);
    milliseconds.push_back(
        std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin)
            .count());
  }
  std::sort(milliseconds.begin(), milliseconds.end());
  RecordProperty("address_us_10k_fastest", static_cast<int>(milliseconds.front() * 1000));
  RecordProperty("address_us_10k_p50", static_cast<int>(milliseconds[10] * 1000));
  // A tenth of a millisecond on an idle machine; the goal is 1 ms, and the bound allows for
  // sanitizers.
  EXPECT_LT(milliseconds.front(), 100.0);
}

}  // namespace
}  // namespace spel::memory
