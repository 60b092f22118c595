// Which states of past sequences are kept, and which of them a prompt goes on from.
#include "engine/schedule/prefix_cache.h"

#include <algorithm>
#include <gtest/gtest.h>
#include <memory>
#include <span>
#include <vector>

#include "tests/engine/scripted_model.h"

namespace spel::engine {
namespace {

using Tokens = std::vector<TokenId>;

/// Long enough to be worth a copy.
constexpr std::size_t kLength = 40;
constexpr std::size_t kEntries = 3;

/// A sequence that differs from those of other `first` in its first token.
Tokens sequence(TokenId first, std::size_t length = kLength) {
  Tokens tokens(length, 1);
  tokens.front() = first;
  return tokens;
}

class PrefixCacheTest : public ::testing::Test {
 protected:
  /// What a state is of: the model's next token is the first one fed plus how many were.
  PrefixCacheTest() {
    options_.vocab_size = 1024;
    options_.max_seq = 256;
    model_ = make_scripted_model(options_, [](std::span<const TokenId> history) {
      return history.front() + static_cast<TokenId>(history.size());
    });
    cache_ = std::make_unique<PrefixCache>(*model_, kEntries);
  }

  [[nodiscard]] std::unique_ptr<SequenceState> state_after(const Tokens& tokens) const {
    auto state = model_->make_state();
    const ForwardItem item{.state = state.get(), .tokens = tokens};
    model_->forward({&item, 1});
    return state;
  }
  void keep(const Tokens& tokens) { cache_->store_copy(tokens, *state_after(tokens), logits_); }
  [[nodiscard]] bool has(const Tokens& prompt) { return cache_->find(prompt).state != nullptr; }

  /// The token that follows `state` and one more, fed to a copy.
  [[nodiscard]] TokenId next_after(const SequenceState& state) const {
    auto copy = model_->make_state();
    copy->copy_from(state);
    const Tokens one{1};
    std::vector<float> logits(options_.vocab_size);
    const ForwardItem item{.state = copy.get(),
                           .tokens = one,
                           .logit_rows = LogitRows::kLast,
                           .logits = logits.data()};
    model_->forward({&item, 1});
    return static_cast<TokenId>(std::max_element(logits.begin(), logits.end()) - logits.begin());
  }
  void expect_state_of(const SequenceState* state, const Tokens& tokens) const {
    ASSERT_NE(state, nullptr);
    EXPECT_EQ(state->position(), tokens.size());
    EXPECT_EQ(next_after(*state), tokens.front() + static_cast<TokenId>(tokens.size()) + 1);
  }

  ScriptedModelOptions options_;
  std::unique_ptr<CausalModel> model_;
  std::unique_ptr<PrefixCache> cache_;
  std::vector<float> logits_ = {0.25F, 0.5F};
};

TEST_F(PrefixCacheTest, GoesOnFromTheLongestEntryThePromptBeginsWith) {
  keep(sequence(7, 40));
  keep(sequence(7, 60));
  keep(sequence(7, 80));
  expect_state_of(cache_->find(sequence(7, 70)).state, sequence(7, 60));
  expect_state_of(cache_->find(sequence(7, 100)).state, sequence(7, 80));
  EXPECT_FALSE(has(sequence(7, 39)));
  EXPECT_FALSE(has(sequence(8, 100)));
}

TEST_F(PrefixCacheTest, GivesLogitsOnlyForTheWholePrompt) {
  keep(sequence(7));
  EXPECT_TRUE(cache_->find(sequence(7, kLength + 1)).logits.empty());
  const PrefixCache::Hit whole = cache_->find(sequence(7));
  EXPECT_EQ(std::vector<float>(whole.logits.begin(), whole.logits.end()), logits_);
}

TEST_F(PrefixCacheTest, AnEntryWithoutLogitsServesOnlyLongerPrompts) {
  auto state = state_after(sequence(7));
  cache_->store_swap(sequence(7), state);
  EXPECT_FALSE(has(sequence(7)));
  expect_state_of(cache_->find(sequence(7, kLength + 1)).state, sequence(7));
}

TEST_F(PrefixCacheTest, TheLeastRecentlyStoredGoesFirst) {
  for (TokenId first = 1; first <= 5; ++first) {
    keep(sequence(first));
  }
  EXPECT_FALSE(has(sequence(1)));
  EXPECT_FALSE(has(sequence(2)));
  for (TokenId first = 3; first <= 5; ++first) {
    expect_state_of(cache_->find(sequence(first)).state, sequence(first));
  }
}

TEST_F(PrefixCacheTest, BeingFoundCountsAsUse) {
  for (TokenId first = 1; first <= 3; ++first) {
    keep(sequence(first));
  }
  EXPECT_TRUE(has(sequence(1)));
  keep(sequence(4));
  EXPECT_FALSE(has(sequence(2)));
  EXPECT_TRUE(has(sequence(1)));
  // Not so what a look-up has only passed by.
  EXPECT_FALSE(has(sequence(9)));
  keep(sequence(5));
  EXPECT_FALSE(has(sequence(3)));
  EXPECT_TRUE(has(sequence(1)));
}

TEST_F(PrefixCacheTest, BeingStoredAgainCountsAsUseAndTakesNoSecondPlace) {
  for (TokenId first = 1; first <= 3; ++first) {
    keep(sequence(first));
  }
  auto again = state_after(sequence(1));
  const SequenceState* const mine = again.get();
  cache_->store_swap(sequence(1), again);
  EXPECT_EQ(again.get(), mine);
  EXPECT_EQ(cache_->used(), kEntries);
  keep(sequence(4));
  EXPECT_TRUE(has(sequence(1)));
  EXPECT_FALSE(has(sequence(2)));
}

TEST_F(PrefixCacheTest, ASwapKeepsTheStateItselfAndLeavesAUsableOne) {
  for (TokenId first = 1; first <= 3; ++first) {
    keep(sequence(first));
  }
  auto state = state_after(sequence(4, 50));
  const SequenceState* const given = state.get();
  cache_->store_swap(sequence(4, 50), state);
  EXPECT_EQ(cache_->find(sequence(4, 60)).state, given);
  // What is left is another's old state: as good as new after a reset.
  ASSERT_NE(state, nullptr);
  ASSERT_NE(state.get(), given);
  state->reset();
  const Tokens tokens = sequence(9, 45);
  const ForwardItem item{.state = state.get(), .tokens = tokens};
  model_->forward({&item, 1});
  expect_state_of(state.get(), tokens);
  expect_state_of(cache_->find(sequence(4, 60)).state, sequence(4, 50));
}

TEST_F(PrefixCacheTest, WhatIsStoredLaterDoesNotReachIntoWhatIsKept) {
  auto state = state_after(sequence(7));
  cache_->store_copy(sequence(7), *state, logits_);
  const Tokens more(10, 1);
  const ForwardItem item{.state = state.get(), .tokens = more};
  model_->forward({&item, 1});
  expect_state_of(cache_->find(sequence(7)).state, sequence(7));
}

TEST_F(PrefixCacheTest, HoldsNoMoreThanItsEntriesAndGrowsNoMemory) {
  const std::size_t bytes = cache_->bytes();
  EXPECT_EQ(cache_->used(), 0U);
  for (TokenId first = 1; first <= 50; ++first) {
    keep(sequence(first, kLength + static_cast<std::size_t>(first)));
    EXPECT_LE(cache_->used(), kEntries);
  }
  EXPECT_EQ(cache_->used(), kEntries);
  EXPECT_EQ(cache_->bytes(), bytes);
}

TEST_F(PrefixCacheTest, TooFewTokensAreNotKept) {
  keep(sequence(7, 31));
  EXPECT_EQ(cache_->used(), 0U);
  keep(sequence(7, 32));
  EXPECT_EQ(cache_->used(), 1U);
}

TEST_F(PrefixCacheTest, WithoutEntriesNothingIsKept) {
  PrefixCache none(*model_, 0);
  auto state = state_after(sequence(7));
  none.store_copy(sequence(7), *state, logits_);
  none.store_swap(sequence(7), state);
  EXPECT_NE(state, nullptr);
  EXPECT_EQ(none.find(sequence(7, 50)).state, nullptr);
}

}  // namespace
}  // namespace spel::engine
