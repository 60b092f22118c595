// The file in which a model's makers say how it is to be sampled.
#include "engine/arch/generation_config.h"

#include <gtest/gtest.h>
#include <string>

#include "config/base/error.h"

namespace spel::engine {
namespace {

GenerationConfig read(const std::string& text) { return read_generation_config(text, "g.json"); }

std::string refusal(const std::string& text) {
  try {
    (void)read(text);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kCorrupt);
    return error.what();
  }
  ADD_FAILURE() << "not refused: " << text;
  return {};
}

TEST(GenerationConfig, TakesWhatTheFileSaysAndNothingElse) {
  const GenerationConfig config = read(
      R"({"bos_token_id": 7, "do_sample": true, "eos_token_id": [46, 44, 46], "pad_token_id": 44,
          "temperature": 0.6, "top_k": 20, "top_p": 0.95, "min_p": null,
          "transformers_version": "5.2.0"})");
  EXPECT_FLOAT_EQ(config.defaults.temperature.value(), 0.6F);
  EXPECT_FLOAT_EQ(config.defaults.top_p.value(), 0.95F);
  EXPECT_EQ(config.defaults.top_k, 20U);
  EXPECT_FALSE(config.defaults.min_p.has_value());
  EXPECT_FALSE(config.defaults.repetition_penalty.has_value());
  EXPECT_EQ(config.eos, (std::vector<TokenId>{46, 44}));
}

TEST(GenerationConfig, AnEmptyFileChangesNothing) {
  EXPECT_EQ(read("{}"), GenerationConfig{});
  EXPECT_EQ(read(R"({"eos_token_id": null, "top_k": null, "temperature": null})"),
            GenerationConfig{});
}

TEST(GenerationConfig, OneEndTokenNeedsNoList) {
  EXPECT_EQ(read(R"({"eos_token_id": 3})").eos, (std::vector<TokenId>{3}));
}

TEST(GenerationConfig, TheEndsOfTheRangesBelongToThem) {
  const GenerationDefaults defaults =
      read(R"({"temperature": 0, "top_p": 1, "top_k": -1, "min_p": 1.0, "repetition_penalty": 2})")
          .defaults;
  EXPECT_EQ(defaults.temperature, 0.0F);
  EXPECT_EQ(defaults.top_p, 1.0F);
  EXPECT_EQ(defaults.top_k, 0U);
  EXPECT_EQ(defaults.min_p, 1.0F);
  EXPECT_EQ(defaults.repetition_penalty, 2.0F);
  EXPECT_GT(read(R"({"repetition_penalty": 1e-300})").defaults.repetition_penalty, 0.0F);
}

TEST(GenerationConfig, RefusesWhatItCannotUseByName) {
  for (const auto& [text, words] : std::vector<std::pair<std::string, std::string>>{
           {R"({"temperature": -0.1})", "temperature"},
           {R"({"temperature": 2.5})", "temperature"},
           {R"({"temperature": "hot"})", "temperature"},
           {R"({"top_p": 0})", "top_p"},
           {R"({"top_p": 1.01})", "top_p"},
           {R"({"min_p": 2})", "min_p"},
           {R"({"repetition_penalty": 0})", "repetition_penalty"},
           {R"({"top_k": -2})", "top_k"},
           {R"({"top_k": 1.5})", "top_k"},
           {R"({"top_k": 1e12})", "top_k"},
           {R"({"eos_token_id": "</s>"})", "eos_token_id"},
           {R"({"eos_token_id": [1, -1]})", "eos_token_id"},
           {R"({"eos_token_id": 1048576})", "eos_token_id"},
           {"[]", "g.json"},
           {"", "g.json"},
           {R"({"top_k": 1,})", "g.json"},
           {R"({"top_k": 1, "top_k": 2})", "top_k"}}) {
    EXPECT_NE(refusal(text).find(words), std::string::npos) << text << "\n" << refusal(text);
  }
}

TEST(GenerationConfig, IsBoundedInSize) {
  EXPECT_FALSE(refusal("{\"a\": \"" + std::string(kGenerationConfigBytesMax, 'x') + "\"}").empty());
  std::string many = R"({"eos_token_id": [0)";
  for (int i = 1; i < 100; ++i) {
    many += "," + std::to_string(i);
  }
  EXPECT_FALSE(refusal(many + "]}").empty());
}

}  // namespace
}  // namespace spel::engine
