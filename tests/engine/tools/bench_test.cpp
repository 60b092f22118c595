// What the benchmark prints, not how fast anything is.
#include <fstream>
#include <gtest/gtest.h>
#include <map>
#include <sstream>

#include "config/json/reader.h"
#include "tests/engine/model/model_fixtures.h"
#include "tests/engine/tools/run_tool.h"

namespace spel::engine::tools {
namespace {

using engine::testing::ScratchFolder;
using testing::BadUsage;
using testing::run_tool;
using testing::ScopedVariable;
using testing::ToolRun;

constexpr const char* kTinyShape =
    "d_model=64,n_layers=10,n_heads=2,head_dim=32,d_ff=96,max_seq=512";

ToolRun quick_bench(std::vector<std::string> args) {
  const std::vector<std::string> common = {"--config", kTinyShape, "--quick", "--runs", "1"};
  args.insert(args.begin(), common.begin(), common.end());
  return run_tool(&bench_main, args);
}

/// The figures of a run, every line of which must be one well-formed object.
std::map<std::string, std::string> figures_of(const std::string& out) {
  std::map<std::string, std::string> figures;
  std::istringstream lines(out);
  for (std::string line; std::getline(lines, line);) {
    JsonObject object(line, {});
    const std::string name = object.contains("figure") ? object.find("figure")->text() : "";
    for (const char* required : {"figure", "value", "unit", "n"}) {
      EXPECT_TRUE(object.contains(required)) << line;
    }
    EXPECT_TRUE(figures.emplace(name, line).second) << "twice: " << name;
  }
  return figures;
}

TEST(Bench, JsonLinesCarryTheNamedFigures) {
  const ToolRun run = quick_bench({"--json"});
  ASSERT_EQ(run.status, kToolOk) << run.err;
  const auto figures = figures_of(run.out);
  for (const char* name :
       {"ternary_gemv_gmacs", "ternary_gemm17_gmacs", "ternary_vs_f32", "choose_greedy",
        "choose_top_p", "v_custom_f32_5", "v_custom_f32_9", "v_custom_f32_17", "c_custom_1",
        "ar_custom_f32_tok_s", "ar_custom_bf16_tok_s", "ar_custom_f32_bandwidth_fraction",
        "ar_custom_bf16_speedup", "rollback_ns", "kv_copy_ratio", "governed_random_ratio",
        "spec_indomain_speedup", "spec_indomain_speedup_request"}) {
    EXPECT_TRUE(figures.contains(name)) << name;
  }
  EXPECT_NE(run.err.find("bench: B3"), std::string::npos) << "no progress: " << run.err;
}

TEST(Bench, TablesShowEveryPath) {
  const ToolRun run = quick_bench({});
  ASSERT_EQ(run.status, kToolOk) << run.err;
  for (const char* text : {"B1", "ternary addsub", "sampling among", "B2", "B3", "raw",
                           "governed (adaptive)", "governed (trip)", "CEILING forced", "full copy",
                           "whole request", "accepted by position", "B4", "rollback"}) {
    EXPECT_NE(run.out.find(text), std::string::npos) << text << " in\n" << run.out;
  }
}

TEST(Bench, PromptsOfAFileAreDecoded) {
  const ScratchFolder folder;
  const std::string path = (folder.path() / "prompts.txt").string();
  std::ofstream(path) << "one prompt\nof two lines\n\nanother\n";
  const ToolRun run = quick_bench({"--only", "prompts", "--prompts", path, "--json"});
  ASSERT_EQ(run.status, kToolOk) << run.err;
  const auto figures = figures_of(run.out);
  EXPECT_TRUE(figures.contains("prompts_alpha"));
  EXPECT_TRUE(figures.contains("prompts_governed_speedup"));
  EXPECT_NE(run.err.find("2 prompts"), std::string::npos) << run.err;
}

TEST(Bench, AContextTooShortToMeasureInIsRefusedSayingWhatIsNeeded) {
  const std::string shape = "d_model=64,n_layers=10,n_heads=2,head_dim=32,d_ff=96,max_seq=";
  for (const char* positions : {"8", "32", "104"}) {
    const ToolRun run = run_tool(&bench_main, {"--config", shape + positions, "--quick"});
    EXPECT_EQ(run.status, kToolBadUsage) << run.err;
    EXPECT_NE(run.err.find("at least 105 positions"), std::string::npos) << run.err;
    EXPECT_TRUE(run.out.empty()) << run.out;
  }
  const ToolRun without =
      run_tool(&bench_main, {"--config", shape + "8", "--quick", "--only", "rollback"});
  EXPECT_EQ(without.status, kToolOk) << without.err;
  const ToolRun shortest = run_tool(&bench_main, {"--config", shape + "105", "--quick", "--runs",
                                                  "1", "--only", "verify,plain,decode"});
  EXPECT_EQ(shortest.status, kToolOk) << shortest.err;
}

TEST(Bench, RefusesWhatItDoesNotUnderstand) {
  const std::vector<BadUsage> cases = {{{"--only", "speed"}, "--only"},
                                       {{"--only", "prompts"}, "--prompts"},
                                       {{"--runs", "0"}, "--runs"},
                                       {{"--temperature", "-1"}, "--temperature"},
                                       {{"--config", "d_model"}, "--config"},
                                       {{"--config", "depth=3"}, "depth"},
                                       {{"--config", "d_model=64", "--model", "x"}, "--model"},
                                       {{"--jsom"}, "--jsom"}};
  for (const BadUsage& bad : cases) {
    const ToolRun run = run_tool(&bench_main, bad.args);
    EXPECT_EQ(run.status, kToolBadUsage) << run.err;
    EXPECT_NE(run.err.find(bad.named), std::string::npos) << run.err;
  }
  for (const char* name : {"SPEL_BENCH_K", "SPEL_SPEC_K", "SPEL_DRAFT_THREADS"}) {
    for (const char* value : {"0", "17", "four"}) {
      const ScopedVariable variable(name, value);
      const ToolRun run = quick_bench({"--only", "rollback"});
      EXPECT_EQ(run.status, kToolBadUsage);
      EXPECT_NE(run.err.find(name), std::string::npos) << run.err;
    }
  }
}

}  // namespace
}  // namespace spel::engine::tools
