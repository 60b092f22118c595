// What the SPEL_… variables do in the command-line tools.
#include "engine/tools/environment.h"

#include <gtest/gtest.h>
#include <memory>

#include "config/base/error.h"
#include "engine/tools/shape.h"
#include "tests/engine/model/model_fixtures.h"
#include "tests/engine/tools/run_tool.h"

namespace spel::engine::tools {
namespace {

using engine::testing::error_of;
using engine::testing::ScratchFolder;
using testing::kShippedModel;
using testing::run_tool;
using testing::ScopedVariable;
using testing::Tool;
using testing::ToolRun;

struct Setting {
  const char* name;
  const char* value;
};

class Variables {
 public:
  explicit Variables(std::initializer_list<Setting> settings) {
    for (const Setting& setting : settings) {
      set_.push_back(std::make_unique<ScopedVariable>(setting.name, setting.value));
    }
  }

 private:
  std::vector<std::unique_ptr<ScopedVariable>> set_;
};

TEST(ToolVariables, ABadValueIsRefusedByEveryToolNamingVariableAndValue) {
  const std::vector<std::pair<Tool, std::vector<std::string>>> tools = {
      {&generate_main, {"--model", kShippedModel, "--prompt", "x", "--max-tokens", "1"}},
      {&bench_main, {"--only", "rollback", "--quick"}},
      {&selftest_main, {"--random", "--only", "7"}},
      {&verify_weights_main, {kShippedModel}},
      {&convert_weights_main, {"--random", "/nonexistent/folder/x"}}};
  for (const Setting& bad : std::initializer_list<Setting>{{"SPEL_CONFIG", "spel.json"},
                                                           {"SPEL_CONFIG", "depth=3"},
                                                           {"SPEL_D_MODEL", "wide"},
                                                           {"SPEL_N_LAYERS", "0"},
                                                           {"SPEL_N_HEADS", "-1"},
                                                           {"SPEL_HEAD_DIM", "1.5"},
                                                           {"SPEL_D_FF", "9999999999"},
                                                           {"SPEL_VOCAB", ""},
                                                           {"SPEL_MAX_SEQ", "0"},
                                                           {"SPEL_ATTN_PERIOD", "x"},
                                                           {"SPEL_DRAFT_MAP", "0:3:6:9"},
                                                           {"SPEL_SPEC_K", "17"},
                                                           {"SPEL_BENCH_K", "0"},
                                                           {"SPEL_DRAFT_THREADS", "7"},
                                                           {"SPEL_KERNEL", "gpu"},
                                                           {"SPEL_ISA", "mmx"},
                                                           {"SPEL_VERIFY_TOL", "nan"},
                                                           {"SPEL_WEIGHTS", ""}}) {
    const ScopedVariable variable(bad.name, bad.value);
    for (const auto& [tool, args] : tools) {
      const ToolRun run = run_tool(tool, args);
      EXPECT_EQ(run.status, kToolBadUsage) << bad.name << ": " << run.err;
      EXPECT_NE(run.err.find(bad.name), std::string::npos) << run.err;
      EXPECT_NE(run.err.find("expected"), std::string::npos) << run.err;
      EXPECT_TRUE(run.out.empty()) << run.out;
    }
  }
}

TEST(ToolVariables, TheTwoNamesOfTheModelMayNotContradictEachOther) {
  const Variables both({{"SPEL_WEIGHTS", "a"}, {"SPEL_MODEL", "b"}});
  const std::string message = error_of([] { (void)model_from_environment(); });
  EXPECT_NE(message.find("SPEL_WEIGHTS"), std::string::npos) << message;
  EXPECT_NE(message.find("SPEL_MODEL"), std::string::npos) << message;
}

TEST(ToolVariables, TheModelIsFoundUnderEitherName) {
  for (const char* name : {"SPEL_WEIGHTS", "SPEL_MODEL"}) {
    const ScopedVariable model(name, "/nonexistent/model");
    const ToolRun run = run_tool(&verify_weights_main, {});
    EXPECT_EQ(run.status, kToolFailed);
    EXPECT_NE(run.err.find("/nonexistent/model"), std::string::npos) << run.err;
  }
}

TEST(ToolVariables, GenerateHonoursThem) {
  const std::vector<std::string> args = {"--model",          kShippedModel,  "--prompt",
                                         "In the beginning", "--max-tokens", "24"};
  const std::string whole = run_tool(&generate_main, args).out;
  for (const char* kernel : {"dotprod", "addsub", "scalar", "auto"}) {
    const ScopedVariable variable("SPEL_KERNEL", kernel);
    EXPECT_EQ(run_tool(&generate_main, args).out, whole) << kernel;
  }
  {
    const ScopedVariable plain("SPEL_SPEC_K", "0");
    EXPECT_NE(run_tool(&generate_main, args).err.find("not drafted"), std::string::npos);
  }
  const ScopedVariable context("SPEL_MAX_SEQ", "20");
  EXPECT_EQ(run_tool(&generate_main, args).out, whole.substr(0, 4) + "\n");
}

TEST(ToolVariables, AModelFromFilesMustHaveTheShapeAskedFor) {
  const ScopedVariable width("SPEL_D_FF", "1028");
  for (const Tool tool : {Tool{&generate_main}, Tool{&bench_main}}) {
    std::vector<std::string> args = {"--model", kShippedModel};
    if (tool == Tool{&generate_main}) {
      args.insert(args.end(), {"--prompt", "x"});
    }
    const ToolRun run = run_tool(tool, args);
    EXPECT_EQ(run.status, kToolBadUsage) << run.err;
    EXPECT_NE(run.err.find("SPEL_D_FF is 1028; the file has 1024"), std::string::npos) << run.err;
  }
  EXPECT_EQ(run_tool(&verify_weights_main, {kShippedModel}).status, kToolBadUsage);
}

TEST(ToolVariables, RandomWeightsTakeTheShapeOfTheEnvironment) {
  const ScratchFolder folder;
  const std::string path = (folder.path() / "r.spelw").string();
  const Variables shape({{"SPEL_CONFIG", "d_model=16,n_layers=4,n_heads=2,head_dim=8,d_ff=8"},
                         {"SPEL_D_FF", "20"},
                         {"SPEL_ATTN_PERIOD", "2"},
                         {"SPEL_DRAFT_MAP", "0,1,2,3"},
                         {"SPEL_MAX_SEQ", "48"}});
  const ToolRun made = run_tool(&convert_weights_main, {"--random", path});
  ASSERT_EQ(made.status, kToolOk) << made.err;
  const ModelConfig config = open_model(path)->config();
  EXPECT_EQ(config.d_model, 16U);
  EXPECT_EQ(config.d_ff, 20U);
  EXPECT_EQ(config.max_seq, 48U);
  EXPECT_EQ(config.draft_layers, (std::vector<std::uint32_t>{0, 1, 2, 3}));
}

TEST(Shape, TheFlagIsOverTheSingleVariablesOverTheList) {
  const Variables variables(
      {{"SPEL_CONFIG", "d_model=4,d_ff=4,vocab=1"}, {"SPEL_D_MODEL", "8"}, {"SPEL_D_FF", "8"}});
  ModelConfig base;
  base.n_heads = 2;
  base.head_dim = 8;
  const ModelConfig config = chosen_shape(base, "d_model=16");
  EXPECT_EQ(config.d_model, 16U);
  EXPECT_EQ(config.d_ff, 8U);
  EXPECT_EQ(config.vocab_size, 1U);
  EXPECT_TRUE(shape_is_given(std::nullopt));
}

TEST(Shape, NothingGivenChangesNothing) {
  EXPECT_FALSE(shape_is_given(std::nullopt));
  EXPECT_EQ(chosen_shape({}, std::nullopt).d_model, ModelConfig{}.d_model);
  // A setting of the server's, which many have set.
  const ScopedVariable context("SPEL_MAX_SEQ", "2048");
  EXPECT_FALSE(shape_is_given(std::nullopt));
  EXPECT_EQ(error_of([] { require_shape({}, std::nullopt); }), "");
}

TEST(Shape, BadShapesAreNamed) {
  for (const char* list : {"d_model", "d_model=", "d_model=0", "d_model=-1", "d_model=1.5",
                           "d_model=4398046511105", "d_modl=1", "=1", ",", "d_model=8,", "",
                           "draft_map=", "draft_map=3:0", "draft_map=0:0", "draft_map=a"}) {
    const std::string message = error_of([&] { (void)chosen_shape({}, std::string(list)); });
    EXPECT_NE(message.find("--config"), std::string::npos) << list << ": " << message;
  }
}

}  // namespace
}  // namespace spel::engine::tools
