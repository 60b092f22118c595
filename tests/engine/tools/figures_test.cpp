// The pieces figures are made of: medians, turns, prompts, forced rounds.
#include <fstream>
#include <gtest/gtest.h>

#include "config/base/error.h"
#include "engine/tools/bench/report.h"
#include "engine/tools/bench/timing.h"
#include "engine/tools/forced_rounds.h"
#include "engine/tools/model_rig.h"
#include "engine/tools/prompts.h"
#include "tests/engine/model/model_fixtures.h"

namespace spel::engine::tools {
namespace {

TEST(Timing, TheMedianIgnoresOneOutlier) {
  const Spread spread = spread_of({3.0, 1.0, 100.0, 2.0, 2.5});
  EXPECT_EQ(spread.median, 2.5);
  EXPECT_EQ(spread.low, 1.0);
  EXPECT_EQ(spread.high, 100.0);
  EXPECT_EQ(spread.runs, 5U);
  EXPECT_EQ(spread_of({1.0, 2.0}).median, 1.5);
  EXPECT_EQ(spread_of({}).runs, 0U);
}

TEST(Timing, BodiesTakeTurns) {
  std::vector<int> order;
  const std::vector<std::function<void()>> bodies = {[&] { order.push_back(0); },
                                                     [&] { order.push_back(1); }};
  const auto seconds = take_turns(bodies, 3, 1e-12);
  ASSERT_EQ(seconds.size(), 2U);
  EXPECT_EQ(seconds[0].size(), 3U);
  EXPECT_GT(seconds[0][0], 0.0);
  EXPECT_EQ(order.back(), 1);
  EXPECT_NE(std::find(order.begin(), order.end(), 0), order.end());
}

TEST(Timing, TheBandwidthTestReadsEveryByte) {
  // All words are 1, so the sum counts them: nothing was left out by the compiler.
  const ReadBandwidth memory(1 << 20);
  EXPECT_EQ(memory.read(), memory.bytes() / 8);
}

TEST(Prompts, TheRecallPromptHasTheDocumentsForm) {
  const std::string prompt = recall_prompt();
  EXPECT_EQ(prompt.size(), 379U);
  for (const std::size_t offset : {30U, 158U, 286U}) {
    EXPECT_EQ(prompt.substr(offset, 13), "KEY_15=1907; ");
  }
  EXPECT_TRUE(prompt.ends_with("?KEY_15="));
  EXPECT_EQ(prompt.find("KEY_15=1907", 287), std::string::npos);
}

TEST(Prompts, FilesAreSplitByBlankLinesOrByLines) {
  const testing::ScratchFolder folder;
  const std::string path = (folder.path() / "prompts").string();
  std::ofstream(path) << "\na\nb\n\nc\n\n";
  EXPECT_EQ(read_prompts(path), (std::vector<std::string>{"a\nb", "c"}));
  std::ofstream(path) << "a\nb\nc\n";
  EXPECT_EQ(read_prompts(path), (std::vector<std::string>{"a", "b", "c"}));
  std::ofstream(path) << "\n \n";
  EXPECT_THROW((void)read_prompts(path), Error);
  EXPECT_THROW((void)read_prompts(path + ".absent"), Error);
}

TEST(ForcedRounds, AcceptTheShareAskedFor) {
  ModelConfig config = testing::tiny_config();
  config.max_seq = 128;
  ModelOptions options;
  options.k_max = 4;
  AssembledModel rig = assemble_rig(random_model(config, 3, WeightsDtype::kF32),
                                    kernels::Kernels::select(), 1, 1, options);
  ForcedRounds rounds(*rig.target, *rig.draft, 4);
  for (const double alpha : {0.0, 0.5, 0.75, 1.0}) {
    rounds.start(random_prompt(6, config.vocab_size, 1));
    const ForcedResult result = rounds.run(40, alpha);
    EXPECT_EQ(result.tokens.size(), 40U);
    EXPECT_EQ(result.accepted + result.rounds, 40U) << "a round emits what it accepts and one more";
    EXPECT_NEAR(result.alpha(), alpha, 1.0 / static_cast<double>(result.proposed));
  }
}

// With nothing accepted, every token is the target's own: that is plain decoding.
TEST(ForcedRounds, AcceptingNothingIsPlainDecoding) {
  ModelConfig config = testing::tiny_config();
  config.max_seq = 128;
  AssembledModel rig = assemble_rig(random_model(config, 4, WeightsDtype::kF32),
                                    kernels::Kernels::select(), 1, 1, {});
  const auto prompt = random_prompt(6, config.vocab_size, 1);
  ForcedRounds rounds(*rig.target, *rig.draft, 4);
  rounds.start(prompt);
  const auto state = rig.target->make_state();
  (void)feed(*rig.target, *state, prompt, 6);
  const TokenId first = rounds.tokens().back();
  EXPECT_EQ(rounds.run(30, 0.0).tokens, decode_plainly(*rig.target, *state, first, 30));
}

}  // namespace
}  // namespace spel::engine::tools
