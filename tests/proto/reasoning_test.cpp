// A model's thoughts told from its answer, however the text arrives.
#include "proto/reasoning.h"

#include <gtest/gtest.h>
#include <string>
#include <vector>

namespace spel::proto {
namespace {

struct Split {
  std::string reasoning;
  std::string content;

  friend bool operator==(const Split&, const Split&) = default;
  friend std::ostream& operator<<(std::ostream& out, const Split& split) {
    return out << "{\"" << split.reasoning << "\", \"" << split.content << "\"}";
  }
};

Split split_pieces(ThoughtStart start, const std::vector<std::string>& pieces) {
  ReasoningSplitter splitter(start);
  Split joined;
  const auto add = [&](const ReasoningSplitter::Piece& piece) {
    // Nothing of a thought may come behind the content's beginning.
    EXPECT_TRUE(joined.content.empty() || piece.reasoning.empty());
    joined.reasoning += piece.reasoning;
    joined.content += piece.content;
  };
  for (const std::string& piece : pieces) {
    add(splitter.push(piece));
  }
  add(splitter.finish());
  return joined;
}

/// The text in pieces of every size, all of which must give the same.
Split split(ThoughtStart start, const std::string& text) {
  const Split whole = split_pieces(start, {text});
  for (std::size_t size = 1; size < text.size(); ++size) {
    std::vector<std::string> pieces;
    for (std::size_t at = 0; at < text.size(); at += size) {
      pieces.push_back(text.substr(at, size));
    }
    EXPECT_EQ(split_pieces(start, pieces), whole) << text << " by " << size;
  }
  return whole;
}

constexpr auto kNone = ThoughtStart::kNone;
constexpr auto kPossible = ThoughtStart::kPossible;
constexpr auto kOpen = ThoughtStart::kOpen;

TEST(Reasoning, AThoughtThePromptOpenedEndsWithItsTag) {
  EXPECT_EQ(split(kOpen, "Two and two.\n</think>\n\nFour."), (Split{"Two and two.", "Four."}));
  EXPECT_EQ(split(kOpen, "a</think>b"), (Split{"a", "b"}));
  EXPECT_EQ(split(kOpen, "\n\na\n\nb\n</think>\nc\n"), (Split{"a\n\nb", "c\n"}));
  EXPECT_EQ(split(kOpen, "</think>\n\nx"), (Split{"", "x"}));
}

TEST(Reasoning, AThoughtTheModelOpensItselfCountsOnlyAtTheBeginning) {
  EXPECT_EQ(split(kPossible, "<think>\nhm\n</think>\n\nYes."), (Split{"hm", "Yes."}));
  EXPECT_EQ(split(kPossible, " \n<think>hm</think>Yes."), (Split{"hm", "Yes."}));
  EXPECT_EQ(split(kPossible, "Yes. <think>no</think>"), (Split{"", "Yes. <think>no</think>"}));
  EXPECT_EQ(split(kPossible, " \n Yes."), (Split{"", " \n Yes."}));
  EXPECT_EQ(split(kPossible, "<thin ice"), (Split{"", "<thin ice"}));
  EXPECT_EQ(split(kPossible, "\n<thi"), (Split{"", "\n<thi"}));
  EXPECT_EQ(split(kPossible, ""), (Split{"", ""}));
}

TEST(Reasoning, AfterAClosedThoughtAllIsContent) {
  EXPECT_EQ(split(kNone, "\n<think>x</think>y"), (Split{"", "\n<think>x</think>y"}));
}

TEST(Reasoning, AThoughtCutOffIsOneToItsEnd) {
  EXPECT_EQ(split(kOpen, "still think"), (Split{"still think", ""}));
  EXPECT_EQ(split(kOpen, "still\n\n"), (Split{"still", ""}));
  EXPECT_EQ(split(kOpen, "still\n</thi"), (Split{"still\n</thi", ""}));
  EXPECT_EQ(split(kOpen, "\n"), (Split{"", ""}));
  EXPECT_EQ(split(kPossible, "<think>still"), (Split{"still", ""}));
}

TEST(Reasoning, WhatLooksLikeATagAndIsNoneStaysText) {
  EXPECT_EQ(split(kOpen, "a < b\n</b>\n</thinker\n</think>ok"),
            (Split{"a < b\n</b>\n</thinker", "ok"}));
  EXPECT_EQ(split(kOpen, "<<//think></</think></think>x"), (Split{"<<//think></", "</think>x"}));
}

TEST(Reasoning, AnOpeningTagTheModelRepeatsIsDroppedOnce) {
  EXPECT_EQ(split(kOpen, "<think>\na</think>b"), (Split{"a", "b"}));
  EXPECT_EQ(split(kOpen, "\n<think><think>a</think>b"), (Split{"<think>a", "b"}));
  EXPECT_EQ(split(kOpen, "<thi</think>b"), (Split{"<thi", "b"}));
  EXPECT_EQ(split(kPossible, "<think><think>a</think>b"), (Split{"<think>a", "b"}));
}

TEST(Reasoning, IndentationAndSpacesOfAnAnswerAreKept) {
  EXPECT_EQ(split(kOpen, "  a  </think>\n\n    code\n"), (Split{"  a  ", "    code\n"}));
}

TEST(Reasoning, TextIsShownAsSoonAsItCannotBeATag) {
  ReasoningSplitter splitter(kOpen);
  EXPECT_EQ(splitter.push("abc").reasoning, "abc");
  EXPECT_EQ(splitter.push("d\n").reasoning, "d");
  EXPECT_EQ(splitter.push("</").reasoning, "");
  EXPECT_EQ(splitter.push("p>").reasoning, "\n</p>");
  const auto piece = splitter.push("e</think>\n\nf");
  EXPECT_EQ(piece.reasoning, "e");
  EXPECT_EQ(piece.content, "f");
  EXPECT_EQ(splitter.push("\n").content, "\n");
}

TEST(Reasoning, ThePromptsLastTagSaysWhereTheAnswerBegins) {
  EXPECT_EQ(thought_after("user\nhi\nassistant\n<think>\n"), kOpen);
  EXPECT_EQ(thought_after("assistant\n<think>\n\n</think>\n\n"), kNone);
  EXPECT_EQ(thought_after("<think>x</think>old answer\nuser\nhi\nassistant\n"), kPossible);
  EXPECT_EQ(thought_after("<think> and then"), kPossible);
  EXPECT_EQ(thought_after(""), kPossible);
  EXPECT_EQ(thought_after(" \n"), kPossible);
}

std::size_t thought_tokens(ThoughtStart start, const std::vector<std::string>& tokens) {
  ThoughtMeter meter(start);
  for (const std::string& token : tokens) {
    meter.push(token);
  }
  return meter.tokens();
}

TEST(Reasoning, CountsTheTokensBetweenTheTags) {
  EXPECT_EQ(thought_tokens(kOpen, {"two", " and", "\n", "</think>", "\n\n", "Four"}), 3U);
  EXPECT_EQ(thought_tokens(kOpen, {"a", "b"}), 2U);
  EXPECT_EQ(thought_tokens(kOpen, {"</think>", "b"}), 0U);
  EXPECT_EQ(thought_tokens(kOpen, {"a", "<", "/", "th", "ink", ">", "b", "c"}), 1U);
  EXPECT_EQ(thought_tokens(kOpen, {"a", "b</thi", "nk>c", "d"}), 2U);
  EXPECT_EQ(thought_tokens(kOpen, {"a", "<", "/p", ">", "</think>"}), 4U);
  EXPECT_EQ(thought_tokens(kOpen, {"", "", "</think>", ""}), 2U);
  EXPECT_EQ(thought_tokens(kPossible, {"\n", "<think>", "a", "b", "</think>", "c"}), 2U);
  EXPECT_EQ(thought_tokens(kPossible, {"<th", "ink>a</think>", "c"}), 0U);
  EXPECT_EQ(thought_tokens(kPossible, {"c", "<think>", "a"}), 0U);
  EXPECT_EQ(thought_tokens(kNone, {"<think>", "a"}), 0U);
}

}  // namespace
}  // namespace spel::proto
