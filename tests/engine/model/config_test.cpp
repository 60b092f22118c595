#include <gtest/gtest.h>
#include <limits>

#include "engine/arch/spel_hybrid.h"
#include "engine/arch/spel_hybrid_json.h"
#include "engine/document/spelw.h"
#include "model_fixtures.h"

namespace spel::engine {
namespace {

using testing::error_of;
using testing::tiny_config;

TEST(ModelConfig, TheDefaultShapeHasTheDocumentsCounts) {
  const ModelConfig config = ModelConfig::default_shape();
  EXPECT_NO_THROW(config.validate());
  EXPECT_EQ(config.target_parameters(), 21'352'044U);
  EXPECT_EQ(config.draft_parameters(), 7'084'452U);
  EXPECT_EQ(config.draft_packed_bytes(), 3'602'432U);
  EXPECT_EQ(spelw_file_bytes(config, true), 113'762'508U);
}

TEST(ModelConfig, TheScaledShapeHasTheDocumentsCounts) {
  const ModelConfig config = ModelConfig::scaled_shape();
  EXPECT_NO_THROW(config.validate());
  EXPECT_EQ(config.target_parameters(), 218'436'992U);
  EXPECT_EQ(config.draft_parameters(), 54'543'456U);
  EXPECT_EQ(config.draft_packed_bytes(), 26'394'624U);
  EXPECT_EQ(spelw_file_bytes(config, true), 1'091'938'316U);
}

struct BadConfig {
  const char* field;
  void (*spoil)(ModelConfig&);
};

class RefusedConfig : public ::testing::TestWithParam<BadConfig> {};

TEST_P(RefusedConfig, NamesTheField) {
  ModelConfig config = tiny_config();
  ASSERT_NO_THROW(config.validate());
  GetParam().spoil(config);
  const std::string message = error_of([&] { config.validate(); });
  EXPECT_NE(message.find(GetParam().field), std::string::npos) << message;
  EXPECT_NE(message.find("expected"), std::string::npos) << message;
}

constexpr std::uint32_t kHuge = 1U << 31;

INSTANTIATE_TEST_SUITE_P(
    EveryField, RefusedConfig,
    ::testing::Values(
        BadConfig{"d_model", [](ModelConfig& c) { c.d_model = 0; }},
        BadConfig{"d_model", [](ModelConfig& c) { c.d_model = kHuge; }},
        BadConfig{"n_layers", [](ModelConfig& c) { c.n_layers = 0; }},
        BadConfig{"n_layers", [](ModelConfig& c) { c.n_layers = 1025; }},
        BadConfig{"n_layers", [](ModelConfig& c) { c.n_layers = kHuge; }},
        BadConfig{"n_heads", [](ModelConfig& c) { c.n_heads = 0; }},
        BadConfig{"n_heads * head_dim", [](ModelConfig& c) { c.n_heads = 3; }},
        BadConfig{"head_dim", [](ModelConfig& c) { c.head_dim = 0; }},
        BadConfig{"head_dim",
                  [](ModelConfig& c) {
                    c.d_model = 20;
                    c.n_heads = 4;
                    c.head_dim = 5;
                  }},
        BadConfig{"d_model",
                  [](ModelConfig& c) {
                    c.d_model = 6;
                    c.n_heads = 1;
                    c.head_dim = 6;
                  }},
        BadConfig{"d_ff", [](ModelConfig& c) { c.d_ff = 10; }},
        BadConfig{"d_ff", [](ModelConfig& c) { c.d_ff = 0; }},
        BadConfig{"vocab_size", [](ModelConfig& c) { c.vocab_size = 0; }},
        BadConfig{"vocab_size", [](ModelConfig& c) { c.vocab_size = kHuge; }},
        BadConfig{"max_seq", [](ModelConfig& c) { c.max_seq = 0; }},
        BadConfig{"attn_period", [](ModelConfig& c) { c.attn_period = 0; }},
        BadConfig{"attn_period", [](ModelConfig& c) { c.attn_period = kHuge; }},
        BadConfig{"conv_taps", [](ModelConfig& c) { c.conv_taps = 0; }},
        BadConfig{"conv_taps", [](ModelConfig& c) { c.conv_taps = 9; }},
        BadConfig{
            "attn_logit_scale",
            [](ModelConfig& c) { c.attn_logit_scale = std::numeric_limits<float>::quiet_NaN(); }},
        BadConfig{"rope_theta", [](ModelConfig& c) { c.rope_theta = 0; }},
        BadConfig{"rms_norm_eps", [](ModelConfig& c) { c.rms_norm_eps = 0; }},
        BadConfig{"l2_norm_eps", [](ModelConfig& c) { c.l2_norm_eps = -1; }},
        BadConfig{"gates", [](ModelConfig& c) { c.gates = GateKind::kInput; }},
        BadConfig{"tie_word_embeddings", [](ModelConfig& c) { c.tie_word_embeddings = true; }},
        BadConfig{"eos_token_id", [](ModelConfig& c) { c.eos_token_id = 5; }},
        BadConfig{"bos_token_id", [](ModelConfig& c) { c.bos_token_id = -2; }},
        BadConfig{"draft.layers", [](ModelConfig& c) { c.draft_layers = {}; }},
        BadConfig{"draft.layers[3]", [](ModelConfig& c) { c.draft_layers = {0, 1, 2, 5}; }},
        BadConfig{"draft.layers[2]", [](ModelConfig& c) { c.draft_layers = {0, 3, 3, 4}; }}));

TEST(ConfigJson, WritesWhatItReads) {
  ModelConfig config = tiny_config();
  config.name = "a \"name\"\n\xE5\xB8\xB3";
  config.attn_logit_scale = 0.1F;
  config.rms_norm_eps = 3e-7F;
  config.rope_theta = 1234.5678901234567;
  config.conv_activation = ConvActivation::kSilu;
  config.read_order = ReadOrder::kAfterDecay;
  config.eos_token_id = 3;
  const ModelConfig again = parse_config_json(write_config_json(config, "f32"), "config.json");
  EXPECT_EQ(again.name, config.name);
  EXPECT_EQ(again.n_layers, config.n_layers);
  EXPECT_EQ(again.attn_logit_scale, config.attn_logit_scale);
  EXPECT_EQ(again.rms_norm_eps, config.rms_norm_eps);
  EXPECT_EQ(again.rope_theta, config.rope_theta);
  EXPECT_EQ(again.conv_activation, ConvActivation::kSilu);
  EXPECT_EQ(again.read_order, ReadOrder::kAfterDecay);
  EXPECT_EQ(again.bos_token_id, -1);
  EXPECT_EQ(again.eos_token_id, 3);
  EXPECT_EQ(again.draft_layers, config.draft_layers);
  EXPECT_EQ(write_config_json(again, "f32"), write_config_json(config, "f32"));
}

constexpr const char* kShape =
    R"("d_model":8,"n_layers":5,"n_heads":2,"head_dim":4,"d_ff":12,"vocab_size":5,"draft":{"layers":[0]})";

std::string config_with(const std::string& member) {
  return "{" + std::string(kShape) + "," + member + "}";
}

TEST(ConfigJson, PassesOverUnknownKeys) {
  EXPECT_NO_THROW(
      (void)parse_config_json(config_with(R"("future":{"a":[1,{"b":null}]})"), "config.json"));
}

TEST(ConfigJson, RequiresTheDimensions) {
  const std::string message =
      error_of([] { (void)parse_config_json(R"({"d_model":8})", "config.json"); });
  EXPECT_NE(message.find("n_layers is missing"), std::string::npos) << message;
}

TEST(ConfigJson, RefusesKnownKeysOfTheWrongTypeOrRangeByName) {
  for (const char* member : {R"("max_seq":"4096")",
                             R"("max_seq":4096.0)",
                             R"("max_seq":-1)",
                             R"("max_seq":4294967296)",
                             R"("max_seq":1e3)",
                             R"("max_seq":null)",
                             R"("attn_logit_scale":"16")",
                             R"("attn_logit_scale":1e39)",
                             R"("rope_theta":1e999)",
                             R"("gates":"input")",
                             R"("gates":null)",
                             R"("conv_activation":"gelu")",
                             R"("read_order":"never")",
                             R"("tie_word_embeddings":1)",
                             R"("tie_word_embeddings":true)",
                             R"("eos_token_id":5)",
                             R"("eos_token_id":1.5)",
                             R"("model_type":"llama")",
                             R"("name":"")",
                             R"("tokenizer":7)",
                             R"("weights_dtype":"int4")",
                             R"("attn_period":0)",
                             R"("conv_taps":255)"}) {
    const std::string text = member;
    const std::string key = text.substr(1, text.find('"', 1) - 1);
    const std::string message =
        error_of([&] { (void)parse_config_json(config_with(member), "folder/config.json"); });
    EXPECT_NE(message.find(key), std::string::npos) << member << ": " << message;
    EXPECT_NE(message.find("folder/config.json"), std::string::npos) << member << ": " << message;
  }
}

TEST(ConfigJson, RefusesDraftFormsTheBuildDoesNotHave) {
  const std::string head = R"({"d_model":8,"n_layers":5,"n_heads":2,"head_dim":4,"d_ff":12,)"
                           R"("vocab_size":5,"draft":)";
  for (const char* draft :
       {R"({"layers":[0],"attn":"q4"})", R"({"layers":[0],"mlp":"q8"})", R"({"layers":[-1]})",
        R"({"layers":[]})", R"({"layers":[2,1]})", R"({"layers":0})", R"([0,3,6,9])", "null"}) {
    EXPECT_NE(error_of([&] { (void)parse_config_json(head + draft + "}", "c"); }), "") << draft;
  }
}

}  // namespace
}  // namespace spel::engine
