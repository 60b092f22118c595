#include <gtest/gtest.h>
#include <sstream>

#include "engine/document/convert.h"
#include "engine/document/random_source.h"
#include "engine/tools/selftest/suites.h"
#include "tests/engine/model/model_fixtures.h"
#include "tests/engine/tools/run_tool.h"

namespace spel::engine::tools {
namespace {

using testing::BadUsage;
using testing::run_tool;
using testing::ScopedVariable;
using testing::ToolRun;

TEST(Selftest, EverySuitePassesOnRandomWeights) {
  const ToolRun run = run_tool(&selftest_main, {"--random"});
  EXPECT_EQ(run.status, kToolOk) << run.out << run.err;
  for (int number = 1; number <= 12; ++number) {
    EXPECT_NE(run.out.find("[" + std::to_string(number) + "] "), std::string::npos) << run.out;
  }
  EXPECT_NE(run.out.find("PASS (0 failures"), std::string::npos) << run.out;
}

TEST(Selftest, ASuiteThatIsNotInThisBuildSaysSo) {
  const ToolRun run = run_tool(&selftest_main, {"--random", "--only", "4"});
  EXPECT_EQ(run.status, kToolOk);
  EXPECT_NE(run.out.find("skip"), std::string::npos) << run.out;
  EXPECT_NE(run.out.find("not in this build"), std::string::npos) << run.out;
}

// A suite that passes whatever it compares would be worth nothing.
TEST(Selftest, EverySuiteFailsWhenItsComparisonIsBroken) {
  const SuiteContext context = make_context(kernels::Kernels::select());
  for (const Suite& suite : all_suites()) {
    std::ostringstream healthy;
    ASSERT_TRUE(run_suite(suite, context, false, healthy)) << healthy.str();
    if (healthy.str().find(" skip ") != std::string::npos) {
      continue;
    }
    std::ostringstream broken;
    EXPECT_FALSE(run_suite(suite, context, true, broken)) << broken.str();
    EXPECT_NE(broken.str().find("FAIL"), std::string::npos) << broken.str();
  }
}

TEST(Selftest, ASoundModelOfAShortContextPasses) {
  for (const char* positions : {"8", "9", "17", "64"}) {
    const ToolRun run = run_tool(
        &selftest_main,
        {"--random", "--config",
         std::string("d_model=64,n_layers=10,n_heads=2,head_dim=32,d_ff=96,max_seq=") + positions});
    EXPECT_EQ(run.status, kToolOk) << positions << "\n" << run.out << run.err;
  }
}

TEST(Selftest, AContextThatHoldsNoRoundIsRefused) {
  const ToolRun run = run_tool(&selftest_main, {"--random", "--config", "max_seq=7"});
  EXPECT_EQ(run.status, kToolBadUsage) << run.out;
  EXPECT_NE(run.err.find("max_seq is 7; the suites need at least 8"), std::string::npos) << run.err;
}

TEST(Selftest, AModelOfAnotherVocabularyIsRefused) {
  const engine::testing::ScratchFolder folder;
  ModelConfig config = engine::testing::tiny_config();
  config.vocab_size = 100;
  write_model(*random_source(config, 1), std::nullopt, folder.path() / "m", ModelForm::kDirectory);
  const ToolRun run =
      run_tool(&selftest_main, {"--model", (folder.path() / "m").string(), "--only", "7"});
  EXPECT_EQ(run.status, kToolFailed);
  EXPECT_NE(run.err.find("vocab_size is 100"), std::string::npos) << run.err;
  EXPECT_NE(run.err.find("128 tokens"), std::string::npos) << run.err;
}

TEST(Selftest, ABrokenSuiteFailsTheRun) {
  const ToolRun run = run_tool(&selftest_main, {"--random", "--only", "1,8", "--break=8"});
  EXPECT_EQ(run.status, kToolFailed);
  EXPECT_NE(run.out.find("FAIL (1 failures"), std::string::npos) << run.out;
}

TEST(Selftest, RefusesWhatItDoesNotUnderstand) {
  const std::vector<BadUsage> cases = {{{"--only", "13"}, "--only"},    {{"--only", "0"}, "--only"},
                                       {{"--break", "two"}, "--break"}, {{"--quiet"}, "--quiet"},
                                       {{"--model"}, "--model"},        {{"stray"}, "stray"}};
  for (const BadUsage& bad : cases) {
    const ToolRun run = run_tool(&selftest_main, bad.args);
    EXPECT_EQ(run.status, kToolBadUsage);
    EXPECT_NE(run.err.find(bad.named), std::string::npos) << run.err;
  }
  const ScopedVariable kernel("SPEL_ISA", "mmx");
  const ToolRun run = run_tool(&selftest_main, {"--random", "--only", "1"});
  EXPECT_EQ(run.status, kToolBadUsage);
  EXPECT_NE(run.err.find("SPEL_ISA"), std::string::npos) << run.err;
}

TEST(Selftest, AMissingModelFails) {
  const ToolRun run = run_tool(&selftest_main, {"--model", "/nonexistent/model", "--only", "1"});
  EXPECT_EQ(run.status, kToolFailed);
  EXPECT_NE(run.err.find("/nonexistent/model"), std::string::npos) << run.err;
}

}  // namespace
}  // namespace spel::engine::tools
