// How a text is cut so that all of it can be found.
#include "memory/passages.h"

#include <algorithm>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <span>
#include <string>
#include <vector>

namespace spel::memory {
namespace {

using ::testing::ElementsAre;

std::string byte_of(TokenId token) { return {static_cast<char>(token)}; }

std::vector<TokenId> tokens_of(const std::string& text) { return {text.begin(), text.end()}; }

std::vector<std::string> texts_of(const std::string& text) {
  std::vector<std::string> texts;
  for (const Passage& passage : split_passages(tokens_of(text), &byte_of)) {
    texts.push_back(text.substr(passage.start, passage.tokens));
  }
  return texts;
}

TEST(Passages, EndWithSentencesAndShareAPassageWhereTheyAreShort) {
  EXPECT_THAT(
      texts_of("The price of item 37 is 482 coins. The price of item 38 is 7.5 coins. End."),
      ElementsAre("The price of item 37 is 482 coins. ",
                  "The price of item 38 is 7.5 coins. End."));
  EXPECT_THAT(texts_of("code 1: 10\ncode 2: 20\ncode 3: 30\ncode 4: 40\ncode 5: 50\n"),
              ElementsAre("code 1: 10\ncode 2: 20\ncode 3: 30\ncode 4: 40\n", "code 5: 50\n"));
}

TEST(Passages, KeepASentenceWholeUpToTheirLimit) {
  const std::string sentence =
      "Anna Bell, who lives by the river in the old mill behind the church, has the number 482. ";
  ASSERT_GT(sentence.size(), kPassageTokens);
  ASSERT_LT(sentence.size(), kPassageTokensMax);
  EXPECT_THAT(texts_of(sentence + sentence), ElementsAre(sentence, sentence));
}

TEST(Passages, WithoutSentencesEveryStretchOfHalfAWindowIsInOne) {
  std::string text;
  for (int i = 0; text.size() < 1000; ++i) {
    text += "word" + std::to_string(i) + (i % 7 == 0 ? ", " : " ");
  }
  const auto passages = split_passages(tokens_of(text), &byte_of);
  for (std::size_t at = 0; at + kWindowTokens / 2 <= text.size(); ++at) {
    EXPECT_TRUE(std::any_of(passages.begin(), passages.end(), [&](const Passage& p) {
      return p.start <= at && at + kWindowTokens / 2 <= p.start + p.tokens;
    })) << at;
  }
  // And it stays a bounded number.
  EXPECT_LE(passages.size(), text.size() / (kWindowTokens / 4) + 1);
}

TEST(Passages, OfAVocabularyOfWordsBeginWithTheWordsBlank) {
  const std::vector<std::string> words{"One", " fact", ".", " Another", " fact", "."};
  std::vector<TokenId> tokens;
  for (int i = 0; i < 60; ++i) {
    tokens.push_back(i % 6);
  }
  const auto bytes = [&](TokenId token) { return words[static_cast<std::size_t>(token)]; };
  for (const Passage& passage : split_passages(tokens, bytes)) {
    EXPECT_EQ(passage.start % 3, 0U);
    EXPECT_EQ(passage.tokens % 3, 0U);
  }
}

TEST(Passages, AShortTextIsOneNoteOfAllOfItUnlessANoteHasAllOfItAlready) {
  const auto tokens = tokens_of("One fact. Another fact. And that is all there is to say of it.");
  std::vector<NoteDraft> notes;
  EXPECT_EQ(add_passages(tokens, 0, true, &byte_of, notes), tokens.size());
  ASSERT_EQ(notes.size(), 1U);
  EXPECT_EQ(notes[0].tokens, tokens);
  EXPECT_TRUE(notes[0].sketch.empty());
  EXPECT_TRUE(notes[0].coordinates.empty());
  (void)add_passages(tokens, 0, true, &byte_of, notes);
  EXPECT_EQ(notes.size(), 1U);
}

TEST(Passages, InPartsAreThoseOfTheWhole) {
  std::string text;
  for (int i = 0; i < 40; ++i) {
    text += "The price of item " + std::to_string(i) + " is " + std::to_string(i * i) + " coins. ";
  }
  const auto tokens = tokens_of(text);
  std::vector<NoteDraft> whole;
  (void)add_passages(tokens, 0, true, &byte_of, whole);
  std::vector<NoteDraft> parts;
  std::uint64_t from = 0;
  for (const std::size_t end : {std::size_t{256}, std::size_t{777}, tokens.size()}) {
    from = add_passages(std::span(tokens).subspan(from, end - from), from, end == tokens.size(),
                        &byte_of, parts);
  }
  ASSERT_EQ(parts.size(), whole.size());
  for (std::size_t i = 0; i < whole.size(); ++i) {
    EXPECT_EQ(parts[i].start, whole[i].start);
    EXPECT_EQ(parts[i].tokens, whole[i].tokens);
  }
}

}  // namespace
}  // namespace spel::memory
