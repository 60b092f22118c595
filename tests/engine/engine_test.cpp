// The engine's behaviour towards its callers, on models whose output is written down.
#include "engine/engine.h"

#include <algorithm>
#include <chrono>
#include <gtest/gtest.h>
#include <string>
#include <string_view>

#include "config/base/error.h"
#include "tests/engine/scripted_model.h"
#include "tests/engine/support.h"

namespace spel::engine {
namespace {

using namespace std::chrono_literals;
using testing::Answer;
using testing::ascii;
using testing::drafting;
using testing::generate;
using testing::Reader;
using testing::recite;
using testing::reciting_engine;
using testing::request;
using Options = testing::ReciterOptions;

/// Spreads small numbers, so that "every third" is at no regular distance.
std::size_t mixed(std::size_t number) { return number * 2654435761U % 4294967291U / 977U; }

TEST(Engine, CopiesOfARequestShareItsPrompt) {
  std::vector<TokenId> tokens(1000, 3);
  const TokenId* const where = tokens.data();
  GenerationRequest request;
  request.prompt = std::move(tokens);
  const GenerationRequest copy = request;
  EXPECT_EQ(request.prompt.data(), where);
  EXPECT_EQ(copy.prompt.data(), where);
  EXPECT_EQ(copy.prompt.size(), 1000U);
}

TEST(Engine, EmitsExactlyMaxTokensAndSaysLength) {
  const auto engine = reciting_engine("abcdefghijklmnop", 1);
  for (std::size_t k = 0; k <= 8; ++k) {
    for (std::size_t max_tokens = 1; max_tokens <= 12; ++max_tokens) {
      GenerationRequest r = request("?", max_tokens);
      r.speculation.k = k;
      const Answer answer = generate(*engine, std::move(r));
      EXPECT_EQ(answer.text, std::string("abcdefghijkl").substr(0, max_tokens));
      EXPECT_EQ(answer.finish.reason, FinishReason::kLength);
      EXPECT_EQ(answer.finish.stats.completion_tokens, max_tokens);
    }
  }
}

// vllm-project/vllm#10432
TEST(Engine, MaxTokensZeroDraftsNothing) {
  const auto engine = reciting_engine("abc", 1);
  const Answer answer = generate(*engine, request("?", 0));
  EXPECT_TRUE(answer.tokens.empty());
  EXPECT_EQ(answer.finish.reason, FinishReason::kLength);
  EXPECT_EQ(answer.finish.stats.proposed, 0U);
  EXPECT_EQ(engine->stats().draft_tokens, 0U);
}

TEST(Engine, APerfectDraftIsAcceptedWholeAndTheReceiptAddsUp) {
  const auto engine = reciting_engine("abcdefghijklmnopqrstuvwxyz", 1);
  GenerationRequest r = request("?", 21);
  r.speculation.k = 4;
  const Answer answer = generate(*engine, std::move(r));
  const GenerationStats& stats = answer.finish.stats;
  EXPECT_EQ(stats.rounds, 4U);
  EXPECT_EQ(stats.proposed, 16U);
  EXPECT_EQ(stats.accepted, 16U);
  EXPECT_EQ(stats.accepted_by_position, (std::vector<std::size_t>{4, 4, 4, 4}));
  EXPECT_EQ(stats.completion_tokens, 1 + stats.accepted + stats.rounds + stats.ar_rounds);
  EXPECT_DOUBLE_EQ(stats.alpha(), 1.0);
}

TEST(Engine, AWrongDraftChangesNothingButTheReceipt) {
  ScriptedModelOptions options;
  Engine engine({}, make_scripted_model(options, recite(ascii("abcdefgh"), 1)),
                drafting(make_scripted_model(options, recite(ascii("zzzzzzzz"), 1))),
                make_ascii_tokenizer());
  const Answer answer = generate(engine, request("?", 8));
  EXPECT_EQ(answer.text, "abcdefgh");
  EXPECT_EQ(answer.finish.stats.accepted, 0U);
  EXPECT_GT(answer.finish.stats.proposed, 0U);
}

TEST(Engine, StopStringsCutInsideAnAcceptedRoundAndTheStatsSaySo) {
  const auto engine = reciting_engine("hello world, and more", 1);
  for (const std::size_t k : {0U, 1U, 4U, 8U}) {
    GenerationRequest r = request("?", 30);
    r.speculation.k = k;
    r.stop = {"wor"};
    const Answer answer = generate(*engine, std::move(r));
    EXPECT_EQ(answer.text, "hello ");
    EXPECT_EQ(answer.finish.reason, FinishReason::kStop);
    EXPECT_EQ(answer.finish.stop_sequence, "wor");
    EXPECT_EQ(answer.finish.stats.completion_tokens, 9U) << k;
    const GenerationStats& stats = answer.finish.stats;
    EXPECT_LE(stats.accepted + stats.discarded, stats.proposed);
    EXPECT_EQ(answer.tokens.size(), stats.completion_tokens);
  }
}

// LostRuins/koboldcpp#1276, vllm-project/vllm#56101
TEST(Engine, NothingAfterEosInsideAnAcceptedDraftIsEmitted) {
  const std::vector<std::string> vocabulary = {"a", "b", "c", "d", "<eos>"};
  ScriptedModelOptions options;
  options.vocab_size = vocabulary.size();
  const std::vector<TokenId> script = {0, 1, 4, 2, 3, 2};
  Engine engine({}, make_scripted_model(options, recite(script, 1)),
                drafting(make_scripted_model(options, recite(script, 1))),
                make_list_tokenizer(vocabulary, 4));
  GenerationRequest r;
  r.prompt = {3};
  r.max_tokens = 10;
  r.speculation.k = 5;
  r.speculation.governor = GovernorKind::kOff;
  const Answer answer = generate(engine, r);
  EXPECT_EQ(answer.text, "ab");
  EXPECT_EQ(answer.finish.reason, FinishReason::kStop);
  EXPECT_EQ(answer.finish.stats.completion_tokens, 3U);  // EOS is generated, not shown.
  EXPECT_EQ(answer.finish.stats.accepted, 2U);
  EXPECT_EQ(answer.finish.stats.discarded, answer.finish.stats.proposed - 2U);

  // ollama/ollama#4524: a stop string does not switch EOS off; ignore_eos does.
  r.stop = {"zzz"};
  EXPECT_EQ(generate(engine, r).finish.reason, FinishReason::kStop);
  r.ignore_eos = true;
  EXPECT_EQ(generate(engine, r).finish.reason, FinishReason::kLength);
}

// spiritbuun/buun-llama-cpp#74, ggml-org/llama.cpp#26651
TEST(Engine, ADraftWithNothingToProposeLeavesAPlainStepAndTheSameText) {
  const NextToken say = recite(ascii("the quick brown fox jumps over the lazy dog"), 1);
  const GenerationRequest wanted = request("?", 120);
  GenerationRequest plain = wanted;
  plain.speculation.enabled = false;
  // The draft's logits are no numbers at every n-th place, or everywhere.
  for (const std::size_t every : {1U, 2U, 3U, 7U}) {
    const NextToken broken = [&](std::span<const TokenId> history) {
      return mixed(history.size()) % every == 0 ? TokenId{-1} : say(history);
    };
    Engine engine({}, make_scripted_model({}, say), drafting(make_scripted_model({}, broken)),
                  make_ascii_tokenizer());
    const Answer expected = generate(engine, plain);
    const Answer answer = generate(engine, wanted);
    EXPECT_EQ(answer.tokens, expected.tokens) << every;
    const GenerationStats& stats = answer.finish.stats;
    EXPECT_EQ(stats.accepted + stats.discarded, stats.proposed) << "its proposals were all right";
    EXPECT_EQ(stats.accepted + stats.rounds + stats.ar_rounds + 1, answer.tokens.size());
    if (every == 1) {
      EXPECT_EQ(stats.proposed, 0U);
      EXPECT_EQ(stats.rounds, 0U);
    } else {
      EXPECT_GT(stats.proposed, 0U);
      EXPECT_GT(stats.ar_rounds, 0U);
    }
  }
}

TEST(Engine, NoEndBeforeTheMinimumWhateverIsDrafted) {
  const std::vector<std::string> vocabulary = {"a", "b", "c", "d", "<eos>"};
  ScriptedModelOptions options;
  options.vocab_size = vocabulary.size();
  // The end at every third place, whatever came before.
  const NextToken next = [](std::span<const TokenId> history) {
    return history.size() % 3 == 0 ? TokenId{4} : static_cast<TokenId>(history.size() % 4);
  };
  Engine engine({}, make_scripted_model(options, next),
                drafting(make_scripted_model(options, next)), make_list_tokenizer(vocabulary, 4));
  GenerationRequest r;
  r.prompt = {3};
  r.max_tokens = 20;
  r.sampling.temperature = 0;
  for (std::size_t minimum = 0; minimum <= 20; ++minimum) {
    r.min_tokens = minimum;
    r.speculation.enabled = false;
    const Answer plain = generate(engine, r);
    for (const std::size_t k : {1U, 3U, 8U}) {
      r.speculation.enabled = true;
      r.speculation.k = k;
      r.speculation.governor = GovernorKind::kOff;
      const Answer drafted = generate(engine, r);
      EXPECT_EQ(drafted.tokens, plain.tokens) << "minimum " << minimum << " k " << k;
      EXPECT_EQ(drafted.finish.reason, plain.finish.reason);
    }
    EXPECT_GE(plain.tokens.size(), minimum);
    EXPECT_FALSE(plain.finish.stop_token) << "EOS is the model's own end";
    const auto first_end = std::find(plain.tokens.begin(), plain.tokens.end(), 4);
    EXPECT_GE(first_end - plain.tokens.begin(), static_cast<std::ptrdiff_t>(minimum));
  }
}

// A model may have more rows than there are tokens, and ids among them that are none.
TEST(Engine, AnIdWithoutATokenIsNeitherChosenNorDrafted) {
  ScriptedModelOptions options;
  options.vocab_size = 6;
  for (const TokenId wanted : {1, 3, 5}) {
    const NextToken next = [wanted](std::span<const TokenId>) { return wanted; };
    Engine engine({}, make_scripted_model(options, next),
                  drafting(make_scripted_model(options, next)),
                  make_list_tokenizer({"a", "", "b", "c"}, std::nullopt));
    GenerationRequest r;
    r.prompt = {2};
    r.max_tokens = 20;
    r.sampling.temperature = 0;
    r.speculation.governor = GovernorKind::kOff;
    const Answer answer = generate(engine, r);
    EXPECT_EQ(answer.text, std::string(20, wanted == 3 ? 'c' : 'a')) << "the lowest of those alike";
    EXPECT_GT(answer.finish.stats.accepted, 0U) << "the draft chooses among the same tokens";
  }
}

// NVIDIA/TensorRT-LLM#16826
TEST(Engine, ThePromptThatLeavesOnePlaceGetsOneToken) {
  Options options;
  options.model.max_seq = 64;
  const auto engine = reciting_engine("abc", 63, options);
  GenerationRequest r = request(std::string(63, 'x'), 100);
  r.speculation.k = 8;
  const Answer answer = generate(*engine, std::move(r));
  EXPECT_EQ(answer.text, "a");
  EXPECT_EQ(answer.finish.reason, FinishReason::kLength);
}

// ggml-org/llama.cpp#22554
TEST(Engine, ADraftWithAShorterContextGoesOnWithTheEndOfTheText) {
  ScriptedModelOptions target;
  target.max_seq = 400;
  ScriptedModelOptions draft = target;
  draft.max_seq = 100;
  const auto script = recite(ascii("abcdefg"), 1);
  Engine engine({}, make_scripted_model(target, script),
                drafting(make_scripted_model(draft, script)), make_ascii_tokenizer());
  const Answer plain = generate(engine, [] {
    GenerationRequest r = request("?", 300);
    r.speculation.enabled = false;
    return r;
  }());
  const Answer answer = generate(engine, request("?", 300));
  EXPECT_EQ(answer.tokens, plain.tokens);
  EXPECT_EQ(answer.tokens.size(), 300U);
  EXPECT_EQ(answer.draft_positions.size(), 300U);
  // Past its own context it has begun afresh, more than once.
  EXPECT_GE(std::count_if(answer.draft_positions.begin() + 150, answer.draft_positions.end(),
                          [](std::int32_t position) { return position >= 0; }),
            50);
}

TEST(Engine, WithoutADraftModelTheReceiptSaysWhy) {
  Options options;
  options.draft = false;
  const auto engine = reciting_engine("abc", 1, options);
  const Answer answer = generate(*engine, request("?", 3));
  EXPECT_EQ(answer.text, "abc");
  EXPECT_FALSE(answer.finish.stats.draft_enabled);
  EXPECT_EQ(answer.finish.stats.draft_reason, "no draft model");
}

TEST(Engine, RefusesRequestsThatBreakTheContract) {
  const auto engine = reciting_engine("abc", 1);
  const auto refused = [&](GenerationRequest r) {
    Reader reader;
    EXPECT_THROW((void)engine->submit(std::move(r), reader.stream()), Error);
  };
  refused(request("", 4));
  refused(request(std::string(4096, 'x'), 4));
  GenerationRequest r = request("a", 4);
  r.prompt = {128};
  refused(r);
  r.prompt = {-1};
  refused(r);
  r = request("a", 4);
  r.stop_token_ids = {999999};
  refused(r);
  r = request("a", 4);
  r.sampling.logit_bias = {{128, 1.0F}};
  refused(r);
  r = request("a", 4);
  r.sampling.thinking = ThinkingBudget{.tokens_max = 2, .begin = {}, .end = 5, .close = {4, 6}};
  refused(r);
  r.sampling.thinking->close = {4, 5, 128};
  refused(r);
  r.sampling.thinking->close.assign(limits::kThinkingCloseMax + 1, 5);
  refused(r);
  Reader tiny(4);
  EXPECT_THROW((void)engine->submit(request("a", 4), tiny.stream()), Error);
  EXPECT_EQ(generate(*engine, request("?", 3)).text, "abc");
}

TEST(Engine, RefusesModelsThatCannotHoldItsLargestStep) {
  Options options;
  options.model.max_batch_rows = options.config.batch_rows() - 1;
  EXPECT_THROW((void)reciting_engine("abc", 1, options), Error);
  options.model.max_batch_rows = options.config.batch_rows();
  EXPECT_EQ(generate(*reciting_engine("abc", 1, options), request("?", 3)).text, "abc");
}

TEST(Engine, ManyLongPromptsAtOnceFitTheDraftsPasses) {
  Options options;
  options.config.sequences = 8;
  options.model.max_batch_rows = options.config.batch_rows();
  const auto engine = reciting_engine("abcdefghij", 130, options);
  std::vector<std::unique_ptr<Reader>> readers;
  for (int i = 0; i < 8; ++i) {
    readers.push_back(std::make_unique<Reader>());
    ASSERT_EQ(engine->submit(request(std::string(130, 'x'), 40), readers.back()->stream()),
              SubmitStatus::kAccepted);
  }
  for (auto& reader : readers) {
    const Answer answer = reader->drain(engine->tokenizer());
    EXPECT_EQ(answer.tokens.size(), 40U);
    EXPECT_GT(answer.finish.stats.accepted, 0U);
  }
}

// ollama/ollama#4124
TEST(Engine, TheQueueIsBoundedAndSaysSo) {
  Options options;
  options.config.sequences = 1;
  options.config.queue_capacity = 10;
  options.config.calibrate = false;
  options.model.delay_per_pass = 2ms;
  const auto engine = reciting_engine("abc", 1, options);
  std::vector<std::unique_ptr<Reader>> readers;
  std::size_t accepted = 0;
  for (int i = 0; i < 300; ++i) {
    readers.push_back(std::make_unique<Reader>());
    const SubmitStatus status = engine->submit(request("?", 200), readers.back()->stream());
    accepted += status == SubmitStatus::kAccepted ? 1 : 0;
  }
  EXPECT_EQ(accepted, 11U);
  EXPECT_EQ(engine->stats().requests_rejected, 289U);
}

TEST(Engine, EndsWithAParkedReaderAndAFullQueueEachTime) {
  // The cancelling and the stopping of a destructor may reach the engine's thread as one wake-up.
  for (int i = 0; i < 200; ++i) {
    Options options;
    options.config.sequences = 1;
    options.config.calibrate = false;
    const auto engine = reciting_engine("abc", 1, options);
    Reader parked;
    Reader waiting;
    ASSERT_EQ(engine->submit(request("?", 200), parked.stream()), SubmitStatus::kAccepted);
    ASSERT_EQ(engine->submit(request("?", 200), waiting.stream()), SubmitStatus::kAccepted);
    if (i % 2 == 0) {
      (void)parked.next();
    }
  }
}

// ggml-org/llama.cpp#13262 and ikawrakow/ik_llama.cpp#1929
TEST(Engine, CancellingAQueuedRequestLeavesTheRunningOneAlone) {
  Options options;
  options.config.sequences = 1;
  options.config.calibrate = false;
  options.model.delay_per_pass = 1ms;
  const auto engine = reciting_engine("abcdefghij", 1, options);
  Reader first;
  Reader second;
  ASSERT_EQ(engine->submit(request("?", 60), first.stream()), SubmitStatus::kAccepted);
  ASSERT_EQ(engine->submit(request("?", 60), second.stream()), SubmitStatus::kAccepted);
  second.stream()->cancel();
  EXPECT_EQ(second.drain(engine->tokenizer()).finish.reason, FinishReason::kCancelled);
  const Answer answer = first.drain(engine->tokenizer());
  EXPECT_EQ(answer.tokens.size(), 60U);
  EXPECT_EQ(answer.finish.reason, FinishReason::kLength);
  ASSERT_TRUE(engine->wait_idle(Clock::now() + 5s));
  EXPECT_EQ(engine->stats().generation_tokens, 60U);
}

TEST(Engine, CancellingFreesThePlaceWithinOneStep) {
  Options options;
  options.config.sequences = 1;
  options.config.calibrate = false;
  options.model.delay_per_pass = 1ms;
  const auto engine = reciting_engine("abc", 1, options);
  Reader reader;
  ASSERT_EQ(engine->submit(request("?", 4000), reader.stream()), SubmitStatus::kAccepted);
  (void)reader.next();
  const std::uint64_t steps = engine->stats().steps;
  reader.stream()->cancel();
  ASSERT_TRUE(engine->wait_idle(Clock::now() + 5s));
  EXPECT_LE(engine->stats().steps, steps + 3);
  EXPECT_EQ(engine->stats().running, 0U);
}

TEST(Engine, AReaderThatDoesNotReadParksItsSequenceOnly) {
  Options options;
  options.config.sequences = 2;
  options.config.calibrate = false;
  const auto engine = reciting_engine("abc", 1, options);
  Reader lazy(32);
  ASSERT_EQ(engine->submit(request("?", 1000), lazy.stream()), SubmitStatus::kAccepted);
  EXPECT_EQ(generate(*engine, request("?", 500)).tokens.size(), 500U);
  EXPECT_LE(engine->stats().generation_tokens, 500U + 32U);
  EXPECT_EQ(lazy.drain(engine->tokenizer()).tokens.size(), 1000U);
}

TEST(Engine, ADeadlineEndsARequestInTheQueueAndInTheBatch) {
  Options options;
  options.config.sequences = 1;
  options.config.calibrate = false;
  options.model.delay_per_pass = 1ms;
  const auto engine = reciting_engine("abc", 1, options);
  Reader running;
  Reader queued;
  GenerationRequest r = request("?", 4000);
  r.deadline = Clock::now() + 50ms;
  ASSERT_EQ(engine->submit(r, running.stream()), SubmitStatus::kAccepted);
  r.deadline = Clock::now() + 10ms;
  ASSERT_EQ(engine->submit(r, queued.stream()), SubmitStatus::kAccepted);
  EXPECT_EQ(queued.drain(engine->tokenizer()).finish.reason, FinishReason::kDeadline);
  const Answer answer = running.drain(engine->tokenizer());
  EXPECT_EQ(answer.finish.reason, FinishReason::kDeadline);
  EXPECT_GT(answer.tokens.size(), 0U);
}

// ollama/ollama#17846
TEST(Engine, AFailingModelEndsItsRequestsWithAnErrorAndTheEngineLives) {
  ScriptedModelOptions options;
  EngineConfig config;
  config.calibrate = false;
  Engine engine(config,
                make_scripted_model(options,
                                    [](std::span<const TokenId> history) -> TokenId {
                                      if (history.front() == '!' && history.size() == 4) {
                                        throw std::runtime_error("out of luck");
                                      }
                                      return 'a';
                                    }),
                nullptr, make_ascii_tokenizer());
  const Answer answer = generate(engine, request("!", 10));
  EXPECT_EQ(answer.finish.reason, FinishReason::kError);
  EXPECT_EQ(answer.text, "aaa");
  EXPECT_EQ(generate(engine, request("?", 3)).text, "aaa");
}

TEST(Engine, WantOfMemoryIsToldApartFromOtherFailures) {
  EngineConfig config;
  config.calibrate = false;
  Engine engine(config,
                make_scripted_model({},
                                    [](std::span<const TokenId> history) -> TokenId {
                                      if (history.front() == '!') {
                                        throw std::bad_alloc();
                                      }
                                      return 'a';
                                    }),
                nullptr, make_ascii_tokenizer());
  const Answer answer = generate(engine, request("!", 10));
  EXPECT_EQ(answer.finish.reason, FinishReason::kError);
  EXPECT_TRUE(answer.finish.out_of_memory);
  EXPECT_EQ(answer.finish.error, "there was not enough memory for it");
  EXPECT_EQ(generate(engine, request("?", 3)).text, "aaa");
  // A reader may have its answer before the books are in order.
  EXPECT_TRUE(engine.wait_idle(Clock::now() + std::chrono::seconds(10)));
  const EngineStats stats = engine.stats();
  EXPECT_EQ(stats.requests_finished[static_cast<std::size_t>(FinishReason::kError)], 1U);
  EXPECT_EQ(stats.running + stats.waiting, 0U);
}

TEST(Engine, DrainingRefusesNewRequestsAndFinishesOldOnes) {
  Options options;
  options.model.delay_per_pass = 1ms;
  options.config.calibrate = false;
  const auto engine = reciting_engine("abc", 1, options);
  Reader reader;
  Reader late;
  ASSERT_EQ(engine->submit(request("?", 50), reader.stream()), SubmitStatus::kAccepted);
  engine->begin_drain();
  EXPECT_EQ(engine->submit(request("?", 50), late.stream()), SubmitStatus::kDraining);
  EXPECT_EQ(reader.drain(engine->tokenizer()).tokens.size(), 50U);
  EXPECT_TRUE(engine->wait_idle(Clock::now() + 1s));
}

TEST(Engine, CountersReconcileAtRest) {
  Options options;
  options.config.sequences = 3;
  const auto engine = reciting_engine("abcdefg", 1, options);
  std::vector<std::unique_ptr<Reader>> readers;
  for (int i = 0; i < 20; ++i) {
    readers.push_back(std::make_unique<Reader>());
    ASSERT_EQ(engine->submit(request("?", 20), readers.back()->stream()), SubmitStatus::kAccepted);
    if (i % 4 == 3) {
      readers.back()->stream()->cancel();
    }
  }
  std::size_t tokens = 0;
  for (auto& reader : readers) {
    tokens += reader->drain(engine->tokenizer()).tokens.size();
  }
  ASSERT_TRUE(engine->wait_idle(Clock::now() + 5s));
  const EngineStats stats = engine->stats();
  std::uint64_t finished = 0;
  for (const std::uint64_t count : stats.requests_finished) {
    finished += count;
  }
  EXPECT_EQ(stats.requests_submitted, 20U);
  EXPECT_EQ(finished, 20U);
  EXPECT_EQ(stats.generation_tokens, tokens);
  EXPECT_EQ(stats.running + stats.waiting, 0U);
}

TEST(Engine, PromptLogprobsCoverEveryTokenButTheFirst) {
  Options options;
  options.config.prefill_chunk = 8;
  const auto engine = reciting_engine("bcd", 1, options);
  GenerationRequest r = request("abcdabcdabcdabcdabcdabcd", 1);
  r.prompt_logprobs = true;
  r.logprobs = 2;
  const Answer answer = generate(*engine, r);
  ASSERT_EQ(answer.prompt.tokens.size(), 24U);
  ASSERT_EQ(answer.prompt.top_logprobs.size(), 24U);
  for (std::size_t i = 1; i < 24; ++i) {
    EXPECT_EQ(answer.prompt.tokens[i].token, r.prompt[i]);
    EXPECT_EQ(answer.prompt.top_logprobs[i].size(), 2U);
  }
  EXPECT_NEAR(answer.prompt.tokens[1].logprob, 0.0F, 1e-6F);  // "b" was certain after "a".
}

}  // namespace
}  // namespace spel::engine
