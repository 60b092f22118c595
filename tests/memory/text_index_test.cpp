// Notes found by what their text and the query's have in common.
#include "memory/text_index.h"

#include <gtest/gtest.h>
#include <string>
#include <vector>

namespace spel::memory {
namespace {

/// Notes numbered from 1, all of other tokens.
TextIndex index_of(const std::vector<std::string>& texts) {
  TextIndex index;
  for (std::size_t i = 0; i < texts.size(); ++i) {
    index.add(static_cast<NoteId>(i + 1), i, texts[i]);
  }
  return index;
}

NoteId first(const TextIndex& index, const std::string& query) {
  const auto matches = index.search(query, 1);
  return matches.empty() ? 0 : matches.front().id;
}

TEST(TextIndex, TellsSentencesApartThatDifferInANumber) {
  std::vector<std::string> texts;
  for (int i = 1; i <= 300; ++i) {
    texts.push_back("The price of item " + std::to_string(i) + " is " +
                    std::to_string(i * 7919 % 997) + " coins.");
  }
  const TextIndex index = index_of(texts);
  for (int i = 1; i <= 300; ++i) {
    EXPECT_EQ(first(index, "The price of item " + std::to_string(i) + " is "), i);
  }
}

TEST(TextIndex, ANumberThatIsAskedForIsNotTheOneThatIsAnswered) {
  const TextIndex index = index_of({"item 12 costs 37 coins", "item 37 costs 12 coins"});
  EXPECT_EQ(first(index, "item 37 costs "), 2);
  EXPECT_EQ(first(index, "item 12 costs "), 1);
}

TEST(TextIndex, TheQuerysEndCountsMoreThanItsBeginning) {
  const TextIndex index = index_of({"item 12 costs 5 coins", "item 55 costs 8 coins"});
  EXPECT_EQ(first(index, "item 12 costs 5 coins. item 55 costs "), 2);
  EXPECT_EQ(first(index, "item 55 costs 8 coins. item 12 costs "), 1);
}

TEST(TextIndex, ANoteThatEndsWithTheQuestionComesAfterOneThatAnswersIt) {
  const TextIndex index =
      index_of({"the price of item 37 is ", "the price of item 37 is 482 coins"});
  EXPECT_EQ(first(index, "the price of item 37 is "), 2);
}

TEST(TextIndex, OtherWordsCaseAndBlanksStillFindTheRareOnes) {
  const TextIndex index =
      index_of({"The lighthouse keeper is called Ambrose.", "The ferryman is called\nBalthasar.",
                "The baker is called Cyr."});
  EXPECT_EQ(first(index, "what was the name of the FERRYMAN?"), 2);
  EXPECT_EQ(first(index, "who keeps the Lighthouse"), 1);
}

TEST(TextIndex, WhatHasNothingInCommonIsLeftOut) {
  const TextIndex index = index_of({"abcdef", "ghijkl"});
  EXPECT_EQ(index.search("xyzabcxyz", 8).size(), 1U);
  EXPECT_TRUE(index.search("0123", 8).empty());
  EXPECT_TRUE(index.search("", 8).empty());
  EXPECT_TRUE(index.search("abc", 0).empty());
  EXPECT_TRUE(TextIndex().search("abc", 2).empty());
  // Queries shorter than what is compared otherwise.
  EXPECT_EQ(first(index, "g"), 2);
  EXPECT_EQ(first(index, "ab"), 1);
}

TEST(TextIndex, OfOneContentOnlyOneIsFoundHoweverManyThereAre) {
  TextIndex index;
  for (NoteId id = 1; id <= 3000; ++id) {
    index.add(id, 1, "the same fact again");
  }
  index.add(3001, 2, "another fact");
  const auto matches = index.search("the same fact ", 4);
  ASSERT_EQ(matches.size(), 2U);
  EXPECT_EQ(matches[0].id, 1);
  EXPECT_EQ(matches[1].id, 3001);
}

TEST(TextIndex, ScoresAreFromNoneToOneAndOneIsAllOfTheQuery) {
  const TextIndex index = index_of({"the captain spoke of the harbor at night", "nothing of it"});
  const auto matches = index.search("the captain spoke ", 2);
  ASSERT_FALSE(matches.empty());
  EXPECT_NEAR(matches[0].score, 1.0F, 1e-5F);
  for (const Match& match : matches) {
    EXPECT_GE(match.score, 0.0F);
    EXPECT_LE(match.score, 1.0F + 1e-5F);
  }
}

TEST(TextIndex, KeepsUpWithRemovalsAndGivesTheMemoryBack) {
  TextIndex index;
  const auto text = [](NoteId id) {
    return "a note with the number " + std::to_string(id) + std::string(200, '.');
  };
  for (NoteId id = 1; id <= 4000; ++id) {
    index.add(id, static_cast<std::uint64_t>(id), text(id));
  }
  const std::size_t before = index.bytes();
  for (NoteId id = 1; id <= 4000; ++id) {
    if (id % 10 != 0) {
      index.remove(id);
    }
  }
  index.remove(99'999);
  EXPECT_EQ(index.size(), 400U);
  EXPECT_LT(index.bytes(), before / 2);
  for (NoteId id = 10; id <= 4000; id += 390) {
    EXPECT_EQ(first(index, "note with the number " + std::to_string(id) + "."), id);
  }
  index.add(5, 5, text(5));
  EXPECT_EQ(first(index, "with the number 5."), 5);
}

TEST(TextIndex, TakesTextsOfAnyBytesAndLength) {
  TextIndex index;
  index.add(1, 1, std::string(3 * TextIndex::kTextBytesMax, 'x'));
  index.add(2, 2, "");
  index.add(3, 3, std::string("\0\xff\0\xfe\0", 5));
  index.add(4, 4, "ab");
  EXPECT_EQ(index.search(std::string(1000, 'x'), 2).size(), 1U);
  EXPECT_EQ(first(index, std::string("\0\xff\0", 3)), 3);
  EXPECT_EQ(index.size(), 4U);
}

}  // namespace
}  // namespace spel::memory
