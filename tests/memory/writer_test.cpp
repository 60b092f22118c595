// What the writer chooses to remember.
#include "memory/writer.h"

#include <algorithm>
#include <gtest/gtest.h>
#include <span>
#include <vector>

#include "config/base/error.h"
#include "kernels/kernels.h"
#include "memory/bf16.h"

namespace spel::memory {
namespace {

constexpr ChannelShape kShape{2, 4};

/// A text of ordinary tokens whose keys are all alike, with stretches of others.
class Text {
 public:
  explicit Text(std::size_t tokens) : tokens_(tokens, 1), keys_(tokens * kShape.width()) {
    for (std::size_t t = 0; t < tokens; ++t) {
      set(t, 0);
    }
  }
  void make_distinct(std::size_t from, std::size_t count) {
    for (std::size_t t = from; t < from + count; ++t) {
      tokens_[t] = static_cast<TokenId>(100 + t);
      set(t, 1 + t % 3);
    }
  }
  [[nodiscard]] std::span<const float> key(std::size_t token) const {
    return std::span(keys_).subspan(token * kShape.width(), kShape.width());
  }
  [[nodiscard]] std::vector<NoteDraft> write(const WriterOptions& options) const {
    const Projection projection(kernels::Kernels::select(), kShape);
    Writer writer(projection, options);
    std::vector<NoteDraft> notes;
    for (std::size_t t = 0; t < tokens_.size(); t += kChunkTokens) {
      const std::size_t count = std::min(kChunkTokens, tokens_.size() - t);
      writer.add({std::span(tokens_).subspan(t, count),
                  std::span(keys_).subspan(t * kShape.width(), count * kShape.width())},
                 notes);
    }
    writer.finish(notes);
    EXPECT_EQ(writer.tokens(), tokens_.size());
    return notes;
  }

 private:
  void set(std::size_t token, std::size_t direction) {
    for (std::size_t channel = 0; channel < kShape.channels; ++channel) {
      float* key = &keys_[token * kShape.width() + channel * kShape.head_dim];
      std::fill(key, key + kShape.head_dim, 0.0F);
      key[direction] = 1.0F;
    }
  }

  std::vector<TokenId> tokens_;
  std::vector<float> keys_;
};

bool holds(const std::vector<NoteDraft>& notes, std::uint64_t from, std::uint64_t count) {
  return std::any_of(notes.begin(), notes.end(), [&](const NoteDraft& note) {
    return note.start <= from && from + count <= note.start + note.tokens.size();
  });
}

TEST(Writer, KeepsTheDistinctStretchesWhole) {
  Text text(512);
  text.make_distinct(40, 12);
  text.make_distinct(300, 12);
  const auto notes = text.write({});
  EXPECT_EQ(notes.size(), 8U);
  EXPECT_TRUE(holds(notes, 40, 12));
  EXPECT_TRUE(holds(notes, 300, 12));
  for (const NoteDraft& note : notes) {
    EXPECT_LE(note.tokens.size(), 48U);
    EXPECT_EQ(note.coordinates.size(), kShape.channels * kChannelCoordinates);
    EXPECT_EQ(note.sketch.size(), kSketchCoordinates * kAnchors);
  }
}

TEST(Writer, AStretchOverAChunksBorderIsKeptWhole) {
  for (std::size_t at = 112; at <= 128; ++at) {
    Text text(384);
    text.make_distinct(at, 13);
    EXPECT_TRUE(holds(text.write({}), at, 13)) << at;
  }
}

TEST(Writer, StretchesAtTheTextsEndsAreKept) {
  Text text(200);
  text.make_distinct(0, 12);
  text.make_distinct(188, 12);
  const auto notes = text.write({});
  EXPECT_TRUE(holds(notes, 0, 12));
  EXPECT_TRUE(holds(notes, 188, 12));
}

TEST(Writer, SketchesBeginAFewTokensBeforeTheWindow) {
  // A window that begins inside KEY_37=4821 is still found by ?KEY_37=.
  constexpr std::size_t kFrom = 60;
  Text text(128);
  text.make_distinct(kFrom, kAnchors);
  const auto notes = text.write({.notes_per_chunk = 1});
  ASSERT_EQ(notes.size(), 1U);
  const Projection projection(kernels::Kernels::select(), kShape);
  std::vector<float> expected(kSketchCoordinates);
  for (std::size_t anchor = 0; anchor < kAnchors; ++anchor) {
    projection.sketch(text.key(kFrom - kAnchorLead + anchor), expected);
    for (std::size_t i = 0; i < kSketchCoordinates; ++i) {
      EXPECT_EQ(notes.front().sketch[i * kAnchors + anchor], to_bf16(expected[i])) << anchor;
    }
  }
}

TEST(Writer, SketchesOfATextsBeginningBeginWithIt) {
  Text text(64);
  text.make_distinct(1, kAnchors);
  const auto notes = text.write({.notes_per_chunk = 1});
  ASSERT_EQ(notes.size(), 1U);
  std::vector<float> expected(kSketchCoordinates);
  Projection(kernels::Kernels::select(), kShape).sketch(text.key(0), expected);
  for (std::size_t i = 0; i < kSketchCoordinates; ++i) {
    EXPECT_EQ(notes.front().sketch[i * kAnchors], to_bf16(expected[i]));
  }
}

TEST(Writer, AShortTextIsOneNoteOfAllOfIt) {
  const auto notes = Text(5).write({.notes_per_chunk = 1});
  ASSERT_EQ(notes.size(), 1U);
  EXPECT_EQ(notes.front().tokens.size(), 5U);
  EXPECT_TRUE(Text(0).write({}).empty());
}

TEST(Writer, ATextNoLongerThanASpanIsKeptWholeWhereverItsWindowIs) {
  for (const std::size_t tokens : {41U, 48U}) {
    for (const std::size_t at : {0U, 12U, 25U}) {
      Text text(tokens);
      text.make_distinct(at, kAnchors);
      for (const NoteDraft& note : text.write({})) {
        EXPECT_EQ(note.start, 0U);
        EXPECT_EQ(note.tokens.size(), tokens);
      }
    }
  }
}

TEST(Writer, TheDocumentsScoreTakesTheSinglePeak) {
  Text text(256);
  text.make_distinct(60, 1);
  const auto notes = text.write({.notes_per_chunk = 1, .score = SpanScore::kPeak});
  EXPECT_TRUE(holds(notes, 60, 1));
}

TEST(Writer, RefusesSpansShorterThanTheirAnchors) {
  const Projection projection(kernels::Kernels::select(), kShape);
  EXPECT_THROW(Writer(projection, {.span_tokens = 8}), Error);
}

}  // namespace
}  // namespace spel::memory
