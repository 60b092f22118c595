#include "config/shape.h"

#include <gtest/gtest.h>
#include <string>

#include "tests/config/complaint.h"

namespace spel::config {
namespace {

std::string complaint(const std::string& list, const Environment& environment = {}) {
  return complaint_of([&] { static_cast<void>(parse_shape_overrides(list, environment)); });
}

TEST(Shape, NothingGivenChangesNothing) {
  const auto shape = parse_shape_overrides("", {});
  EXPECT_TRUE(shape.values.empty());
  EXPECT_TRUE(shape.draft_map.empty());
}

TEST(Shape, TheDocumentsListIsRead) {
  const auto shape =
      parse_shape_overrides("d_model=1024,n_layers=16,n_heads=16,head_dim=64,d_ff=3072", {});
  EXPECT_EQ(shape.values.size(), 5U);
  EXPECT_EQ(shape.values.at("d_model"), 1024U);
  EXPECT_EQ(shape.values.at("d_ff"), 3072U);
}

TEST(Shape, TheFlagIsOverTheSingleVariablesOverTheList) {
  const Environment environment = {{"SPEL_CONFIG", "d_model=1,d_ff=1,vocab=1,draft_map=0:1"},
                                   {"SPEL_D_MODEL", "2"},
                                   {"SPEL_D_FF", "2"},
                                   {"SPEL_DRAFT_MAP", "0,3,6,9"}};
  const auto shape = parse_shape_overrides("d_model=3", environment);
  EXPECT_EQ(shape.values.at("d_model"), 3U);
  EXPECT_EQ(shape.values.at("d_ff"), 2U);
  EXPECT_EQ(shape.values.at("vocab"), 1U);
  EXPECT_EQ(shape.draft_map, (std::vector<std::uint32_t>{0, 3, 6, 9}));
  EXPECT_EQ(parse_shape_overrides("draft_map=1:2", environment).draft_map,
            (std::vector<std::uint32_t>{1, 2}));
}

TEST(Shape, EveryVariableOfTheDocumentIsKnown) {
  for (const char* name :
       {"D_MODEL", "N_LAYERS", "N_HEADS", "HEAD_DIM", "D_FF", "VOCAB", "MAX_SEQ", "ATTN_PERIOD"}) {
    EXPECT_EQ(parse_shape_overrides("", {{"SPEL_" + std::string(name), "8"}}).values.size(), 1U)
        << name;
  }
}

TEST(Shape, BadShapesAreNamed) {
  for (const char* list : {"d_model", "d_model=", "d_model=0", "d_model=-1", "d_model=1.5",
                           "d_model=4398046511105", "d_modl=1", "=1", ",", "d_model=1,",
                           "draft_map=", "draft_map=3:0", "draft_map=0:0", "draft_map=a"}) {
    EXPECT_NE(complaint(list).find("--config"), std::string::npos) << list;
  }
  EXPECT_NE(complaint("", {{"SPEL_VOCAB", "x"}}).find("SPEL_VOCAB"), std::string::npos);
  EXPECT_NE(complaint("", {{"SPEL_DRAFT_MAP", "9,0"}}).find("SPEL_DRAFT_MAP"), std::string::npos);
}

TEST(ToolSettings, BenchKIsOverSpecKOverFour) {
  EXPECT_EQ(parse_tool_settings({}).bench_k, 4U);
  EXPECT_EQ(parse_tool_settings({{"SPEL_SPEC_K", "8"}}).bench_k, 8U);
  EXPECT_EQ(parse_tool_settings({{"SPEL_SPEC_K", "8"}, {"SPEL_BENCH_K", "16"}}).bench_k, 16U);
}

TEST(ToolSettings, ReadsTheRestAndRefusesWhatIsNotAllowed) {
  const auto settings = parse_tool_settings({{"SPEL_WEIGHTS", "w"},
                                             {"SPEL_VERIFY_TOL", "1e-4"},
                                             {"SPEL_DRAFT_THREADS", "6"},
                                             {"SPEL_KERNEL", "addsub"},
                                             {"SPEL_ISA", "avx2"}});
  EXPECT_EQ(settings.weights, "w");
  EXPECT_EQ(settings.verify_tolerance, 1e-4);
  EXPECT_EQ(settings.draft_threads, 6U);
  EXPECT_EQ(settings.kernel, "addsub");
  EXPECT_EQ(settings.isa, "avx2");
  EXPECT_EQ(parse_tool_settings({}).verify_tolerance, 1e-3);
  for (const Environment& bad : std::initializer_list<Environment>{{{"SPEL_BENCH_K", "17"}},
                                                                   {{"SPEL_SPEC_K", "17"}},
                                                                   {{"SPEL_VERIFY_TOL", "0"}},
                                                                   {{"SPEL_VERIFY_TOL", "nan"}},
                                                                   {{"SPEL_DRAFT_THREADS", "7"}},
                                                                   {{"SPEL_DRAFT_THREADS", "0"}},
                                                                   {{"SPEL_KERNEL", "gpu"}}}) {
    const std::string message = complaint_of([&] { static_cast<void>(parse_tool_settings(bad)); });
    EXPECT_NE(message.find(bad.begin()->first), std::string::npos);
  }
}

}  // namespace
}  // namespace spel::config
