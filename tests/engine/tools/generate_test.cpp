#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <iterator>

#include "tests/engine/model/model_fixtures.h"
#include "tests/engine/tools/run_tool.h"

namespace spel::engine::tools {
namespace {

using testing::BadUsage;
using testing::kShippedModel;
using testing::run_tool;
using testing::ScopedVariable;
using testing::ToolRun;

std::vector<std::string> with_model(std::vector<std::string> args) {
  args.insert(args.begin(), {"--model", kShippedModel});
  return args;
}

TEST(Generate, TheCompletionGoesToOutAndTheReceiptToErr) {
  const ToolRun run =
      run_tool(&generate_main,
               with_model({"--prompt", "In the beginning", "--max-tokens", "24", "--stats"}));
  ASSERT_EQ(run.status, kToolOk) << run.err;
  EXPECT_EQ(run.out.size(), 25U) << run.out;
  EXPECT_NE(run.err.find("24 tokens"), std::string::npos) << run.err;
  EXPECT_NE(run.err.find("accepted by position"), std::string::npos) << run.err;
}

TEST(Generate, SpeculationDoesNotChangeTheText) {
  for (const char* temperature : {"0", "0.9"}) {
    const std::vector<std::string> common = {"--prompt",      "The river", "--max-tokens", "32",
                                             "--temperature", temperature, "--seed",       "5"};
    std::vector<std::string> plain = common;
    plain.insert(plain.end(), {"--k", "0"});
    const ToolRun off = run_tool(&generate_main, with_model(plain));
    EXPECT_NE(off.err.find("not drafted"), std::string::npos) << off.err;
    for (const char* governor : {"off", "trip", "adaptive"}) {
      std::vector<std::string> args = common;
      args.insert(args.end(), {"--k", "8", "--governor", governor});
      EXPECT_EQ(run_tool(&generate_main, with_model(args)).out, off.out) << governor;
    }
  }
}

TEST(Generate, AStopStringIsNotShown) {
  const std::vector<std::string> args = {"--prompt", "In the beginning", "--max-tokens", "64"};
  const std::string whole = run_tool(&generate_main, with_model(args)).out;
  std::vector<std::string> stopped = args;
  const std::string stop = whole.substr(10, 4);
  stopped.insert(stopped.end(), {"--stop", stop});
  const ToolRun run = run_tool(&generate_main, with_model(stopped));
  EXPECT_EQ(run.out, whole.substr(0, whole.find(stop)) + "\n");
  EXPECT_NE(run.err.find("finish stop"), std::string::npos) << run.err;
}

TEST(Generate, AloneSaysHowItIsUsed) {
  const ToolRun run = run_tool(&generate_main, {});
  EXPECT_EQ(run.status, kToolBadUsage);
  EXPECT_NE(run.err.find("usage: spel generate --prompt TEXT"), std::string::npos) << run.err;
}

TEST(Generate, TheModelsEndOfSequenceTokenEndsTheText) {
  namespace fs = std::filesystem;
  const engine::testing::ScratchFolder folder;
  for (const char* file : {"model.safetensors", "draft.safetensors"}) {
    fs::create_symlink(fs::path(kShippedModel) / file, folder.path() / file);
  }
  std::ifstream shipped(kShippedModel + "/config.json");
  std::string config((std::istreambuf_iterator<char>(shipped)), {});
  const std::string none = "\"eos_token_id\": null";
  const std::vector<std::string> args = {"--prompt", "In the beginning", "--max-tokens", "24"};
  const std::string whole = run_tool(&generate_main, with_model(args)).out;
  const char last = whole[7];
  config.replace(config.find(none), none.size(),
                 "\"eos_token_id\": " + std::to_string(static_cast<int>(last)));
  std::ofstream(folder.path() / "config.json") << config;
  std::vector<std::string> ended = {"--model", folder.path().string()};
  ended.insert(ended.end(), args.begin(), args.end());
  const ToolRun run = run_tool(&generate_main, ended);
  ASSERT_EQ(run.status, kToolOk) << run.err;
  EXPECT_EQ(run.out, whole.substr(0, whole.find(last)) + "\n");
  EXPECT_NE(run.err.find("finish stop"), std::string::npos) << run.err;
}

TEST(Generate, RefusesWhatItDoesNotUnderstand) {
  const std::vector<BadUsage> cases = {
      {{"--max-tokens", "4"}, "--prompt"},
      {{"--prompt", "x", "--temperature", "hot"}, "--temperature"},
      {{"--prompt", "x", "--governor", "strict"}, "--governor"},
      {{"--prompt", "x", "--k", "17"}, "--k"},
      {{"--prompt", "x", "--seed", "-1"}, "--seed"},
      {{"--prompt", "x", "--stop", ""}, "--stop"},
      {{"--prompt", "x", "--weights-dtype", "f16"}, "--weights-dtype"},
      {{"--prompt", "x", "--prompt", "y"}, "--prompt"},
      {{"--text", "x"}, "--text"}};
  for (const BadUsage& bad : cases) {
    const ToolRun run = run_tool(&generate_main, with_model(bad.args));
    EXPECT_EQ(run.status, kToolBadUsage);
    EXPECT_NE(run.err.find(bad.named), std::string::npos) << run.err;
    EXPECT_TRUE(run.out.empty());
  }
  const ScopedVariable threads("SPEL_DRAFT_THREADS", "7");
  const ToolRun run = run_tool(&generate_main, with_model({"--prompt", "x"}));
  EXPECT_EQ(run.status, kToolBadUsage);
  EXPECT_NE(run.err.find("SPEL_DRAFT_THREADS"), std::string::npos) << run.err;
}

TEST(Generate, AMissingModelFails) {
  const ToolRun run = run_tool(&generate_main, {"--model", "/nonexistent/model", "--prompt", "x"});
  EXPECT_EQ(run.status, kToolFailed);
  EXPECT_NE(run.err.find("/nonexistent/model"), std::string::npos) << run.err;
}

}  // namespace
}  // namespace spel::engine::tools
