#include "engine/request/stop_matcher.h"

#include <gtest/gtest.h>
#include <string>
#include <vector>

namespace spel::engine {
namespace {

std::vector<std::string> stops(std::initializer_list<std::string> list) { return list; }

TEST(StopMatcher, CutsBeforeTheStopString) {
  StopMatcher matcher(stops({"3"}));
  EXPECT_FALSE(matcher.feed("1 2 "));
  const auto match = matcher.feed("3 4");
  ASSERT_TRUE(match);
  EXPECT_EQ(match->text_bytes, 4U);
}

TEST(StopMatcher, FindsAStopSpanningSeveralTokens) {
  StopMatcher matcher(stops({"O P Q"}));
  std::size_t fed = 0;
  for (const char letter : std::string("M N O P Q R")) {
    const auto match = matcher.feed(std::string(1, letter));
    ++fed;
    if (match) {
      EXPECT_EQ(match->text_bytes, 4U);
      EXPECT_EQ(fed, 9U);
      return;
    }
  }
  FAIL() << "the stop string was not found";
}

TEST(StopMatcher, FindsAStopThatEndsInsideAToken) {
  StopMatcher matcher(stops({"Pari"}));
  EXPECT_FALSE(matcher.feed("Par"));
  EXPECT_EQ(matcher.held_bytes(), 3U);
  const auto match = matcher.feed("is");
  ASSERT_TRUE(match);
  EXPECT_EQ(match->text_bytes, 0U);
}

TEST(StopMatcher, TheFirstStopToBeCompletedWinsWhateverTheListOrder) {
  for (const auto& list : {stops({"later", "soon"}), stops({"soon", "later"})}) {
    StopMatcher matcher(list);
    const auto match = matcher.feed("as soon as later");
    ASSERT_TRUE(match);
    EXPECT_EQ(list[match->stop], "soon");
    EXPECT_EQ(match->text_bytes, 3U);
  }
}

TEST(StopMatcher, OfTwoCompletedByOneByteTheLongerWins) {
  StopMatcher matcher(stops({"d", "end"}));
  const auto match = matcher.feed("the end");
  ASSERT_TRUE(match);
  EXPECT_EQ(match->stop, 1U);
  EXPECT_EQ(match->text_bytes, 4U);
}

TEST(StopMatcher, HoldsBackOnlyWhatMayStillBecomeAStop) {
  StopMatcher matcher(stops({"ababc", "bx"}));
  EXPECT_FALSE(matcher.feed("zabab"));
  EXPECT_EQ(matcher.held_bytes(), 4U);
  EXPECT_FALSE(matcher.feed("a"));  // "aba" is left of "ababa".
  EXPECT_EQ(matcher.held_bytes(), 3U);
  EXPECT_FALSE(matcher.feed("q"));
  EXPECT_EQ(matcher.held_bytes(), 0U);
}

TEST(StopMatcher, HoldsNothingWithoutStops) {
  StopMatcher matcher(stops({}));
  EXPECT_FALSE(matcher.feed("anything"));
  EXPECT_EQ(matcher.held_bytes(), 0U);
  EXPECT_EQ(matcher.total_bytes(), 8U);
}

TEST(StopMatcher, ResultDoesNotDependOnHowTheTextArrives) {
  const std::string text = "aaabaaaabaaabaaaab aabaab aaaac";
  const auto list = stops({"aaaab a", "aaaac", "baab"});
  StopMatcher whole(list);
  const auto expected = whole.feed(text);
  ASSERT_TRUE(expected);
  for (std::size_t size = 1; size < 9; ++size) {
    StopMatcher pieces(list);
    std::optional<StopMatcher::Match> match;
    for (std::size_t at = 0; at < text.size() && !match; at += size) {
      match = pieces.feed(std::string_view(text).substr(at, size));
    }
    ASSERT_TRUE(match) << size;
    EXPECT_EQ(match->stop, expected->stop) << size;
    EXPECT_EQ(match->text_bytes, expected->text_bytes) << size;
  }
}

TEST(StopMatcher, WhatIsPassedEndsNothingButMayBeginAStop) {
  StopMatcher matcher(stops({"ab", "bcd"}));
  matcher.pass("ab");
  EXPECT_EQ(matcher.total_bytes(), 2U);
  EXPECT_EQ(matcher.held_bytes(), 1U) << "the b may begin the second";
  EXPECT_FALSE(matcher.feed("c"));
  const auto match = matcher.feed("d");
  ASSERT_TRUE(match);
  EXPECT_EQ(match->stop, 1U);
  EXPECT_EQ(match->text_bytes, 1U);
}

TEST(StopMatcher, PassingManyBytesForgetsNothingThatMayStillMatter) {
  StopMatcher matcher(stops({"xyz"}));
  for (int i = 0; i < 100; ++i) {
    matcher.pass("xyz");
  }
  matcher.pass("xy");
  EXPECT_EQ(matcher.held_bytes(), 2U);
  const auto match = matcher.feed("z");
  ASSERT_TRUE(match);
  EXPECT_EQ(match->text_bytes, 300U);
}

}  // namespace
}  // namespace spel::engine
