// What a prompt costs that was read before, wholly or in part.
#include <chrono>
#include <gtest/gtest.h>
#include <memory>
#include <string>
#include <vector>

#include "tests/engine/support.h"

namespace spel::engine {
namespace {

using namespace std::chrono_literals;
using testing::Answer;
using testing::generate;
using testing::Reader;
using testing::reciting_engine;
using testing::request;

TEST(PrefixReuse, APromptThatExtendsAFinishedOneReusesItsState) {
  const auto engine = reciting_engine("abc", 40);
  const std::string prompt(40, 'x');
  const Answer first = generate(*engine, request(prompt, 10));
  EXPECT_EQ(first.finish.stats.cached_tokens, 0U);
  const Answer second = generate(*engine, request(prompt + first.text + "more", 10));
  EXPECT_EQ(second.finish.stats.cached_tokens, 49U);
  EXPECT_EQ(second.finish.stats.prompt_tokens, 54U);
}

TEST(PrefixReuse, APromptAskedAgainIsNotReadAgain) {
  const auto engine = reciting_engine("abcdef", 40);
  const std::string prompt(40, 'x');
  const Answer first = generate(*engine, request(prompt, 5));
  const std::uint64_t read = engine->stats().prompt_tokens;
  const Answer again = generate(*engine, request(prompt, 5));
  EXPECT_EQ(again.text, first.text);
  EXPECT_EQ(again.finish.stats.cached_tokens, 40U);
  EXPECT_EQ(again.finish.stats.completion_tokens, 5U);
  ASSERT_TRUE(engine->wait_idle(Clock::now() + 5s));
  EXPECT_EQ(engine->stats().prompt_tokens, read);
}

TEST(PrefixReuse, AskedAgainWithPromptLogprobsItIsReadAgain) {
  const auto engine = reciting_engine("abc", 40);
  GenerationRequest r = request(std::string(40, 'x'), 3);
  (void)generate(*engine, r);
  r.prompt_logprobs = true;
  const Answer again = generate(*engine, r);
  EXPECT_EQ(again.finish.stats.cached_tokens, 0U);
  EXPECT_EQ(again.prompt.tokens.size(), 40U);
}

// What ended with its last prompt was kept without logits; asked as a prompt, it gets them.
TEST(PrefixReuse, AFinishedConversationAskedAsItStandsIsReadOnce) {
  const auto engine = reciting_engine("abcdefghij", 40);
  const std::string prompt(40, 'x');
  const Answer first = generate(*engine, request(prompt, 6));
  const std::string all = prompt + first.text.substr(0, 5);  // The last token was never fed.
  EXPECT_EQ(generate(*engine, request(all, 1)).finish.stats.cached_tokens, 40U);
  const Answer again = generate(*engine, request(all, 2));
  EXPECT_EQ(again.finish.stats.cached_tokens, 45U);
  EXPECT_EQ(again.text, "fg");
}

// One place, and every request ends as it is admitted: nothing else would wake the engine.
TEST(PrefixReuse, RequestsThatEndAtOnceDoNotHoldUpTheQueue) {
  testing::ReciterOptions options;
  options.config.sequences = 1;
  const auto engine = reciting_engine("abc", 40, options);
  const std::string prompt(40, 'x');
  (void)generate(*engine, request(prompt, 3));
  std::vector<std::unique_ptr<Reader>> readers;
  for (std::size_t i = 0; i < 12; ++i) {
    readers.push_back(std::make_unique<Reader>());
    ASSERT_EQ(engine->submit(request(prompt, i % 2), readers.back()->stream()),
              SubmitStatus::kAccepted);
  }
  for (std::size_t i = 0; i < readers.size(); ++i) {
    const Answer answer = readers[i]->drain(engine->tokenizer());
    EXPECT_EQ(answer.text, std::string("a").substr(0, i % 2));
    EXPECT_EQ(answer.finish.reason, FinishReason::kLength);
  }
  EXPECT_TRUE(engine->wait_idle(Clock::now() + 5s));
}

}  // namespace
}  // namespace spel::engine
