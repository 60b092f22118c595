// A model and its tokenizer have the same tokens.
#include "engine/assembled_model.h"

#include <gtest/gtest.h>
#include <limits>

#include "config/base/error.h"
#include "engine/document/convert.h"
#include "engine/document/random_source.h"
#include "engine/engine.h"
#include "tests/engine/model/model_fixtures.h"
#include "tests/engine/scripted_model.h"
#include "tests/engine/support.h"

namespace spel::engine {
namespace {

using testing::error_of;
using testing::ScratchFolder;
using testing::tiny_ascii_config;

TEST(Tokenizer, AnIdThatIsNoTokenHasNoBytes) {
  for (const auto& tokenizer :
       {std::shared_ptr<const Tokenizer>(make_ascii_tokenizer()),
        std::shared_ptr<const Tokenizer>(make_list_tokenizer({"a", "bc"}, std::nullopt))}) {
    const auto size = static_cast<TokenId>(tokenizer->vocab_size());
    EXPECT_FALSE(tokenizer->bytes(size - 1).empty());
    for (const TokenId id : {size, size + 1, TokenId{99'999}, std::numeric_limits<TokenId>::max(),
                             TokenId{-1}, std::numeric_limits<TokenId>::min()}) {
      EXPECT_TRUE(tokenizer->bytes(id).empty()) << id;
    }
  }
}

TEST(AssembledModel, AVocabularyOfAnotherSizeIsRefusedInEitherFormNamingBoth) {
  const ScratchFolder folder;
  for (const std::uint32_t vocab : {64U, 127U, 129U, 1000U}) {
    for (const ModelForm form : {ModelForm::kDirectory, ModelForm::kSpelw}) {
      ModelConfig config = tiny_ascii_config();
      config.vocab_size = vocab;
      const auto path =
          folder.path() / (std::to_string(vocab) + (form == ModelForm::kSpelw ? "s" : "d"));
      write_model(*random_source(config, 1), std::nullopt, path, form);
      const std::string message =
          error_of([&] { (void)load_text_model(path, WeightsDtype::kF32); });
      EXPECT_NE(message.find(path.string()), std::string::npos) << message;
      EXPECT_NE(message.find("vocab_size is " + std::to_string(vocab)), std::string::npos)
          << message;
      EXPECT_NE(message.find("has 128 tokens"), std::string::npos) << message;
    }
  }
}

TEST(AssembledModel, ADirectoryWithoutADraftIsATargetAloneAndAnswersTheSame) {
  const ScratchFolder folder;
  const auto path = folder.path() / "model";
  write_model(*random_source(tiny_ascii_config(), 1), std::nullopt, path, ModelForm::kDirectory);
  const LoadedModel whole = load_text_model(path, WeightsDtype::kF32);
  std::filesystem::remove(path / "draft.safetensors");
  const LoadedModel alone = load_text_model(path, WeightsDtype::kF32);
  EXPECT_TRUE(whole.weights->draft.has_value());
  EXPECT_FALSE(alone.weights->draft.has_value());
  EXPECT_NE(alone.weights->sha256, whole.weights->sha256);

  const kernels::Kernels& kernels = kernels::Kernels::select();
  kernels::ThreadPool pool(1);
  std::vector<std::vector<float>> logits;
  for (const auto& weights : {whole.weights, alone.weights}) {
    const auto model = make_target_model(weights, kernels, pool, {});
    const auto state = model->make_state();
    const auto tokens = testing::random_tokens(20, model->vocab_size(), 1);
    std::vector<float>& rows = logits.emplace_back(tokens.size() * model->vocab_size());
    const ForwardItem item{state.get(), tokens, false, LogitRows::kAll, rows.data()};
    model->forward({&item, 1});
  }
  EXPECT_EQ(logits[0], logits[1]);
}

TEST(AssembledModel, TheEndOfSequenceTokenOfTheConfigEndsAnswers) {
  ModelConfig config = tiny_ascii_config();
  EXPECT_EQ(make_tokenizer(config)->eos(), std::nullopt);
  config.eos_token_id = 10;
  EXPECT_EQ(make_tokenizer(config)->eos(), TokenId{10});
  config.eos_token_id = 0;
  EXPECT_EQ(make_tokenizer(config)->eos(), TokenId{0});
}

TEST(AssembledModel, WhatNoTokenizerHereDoesIsRefused) {
  ModelConfig config = tiny_ascii_config();
  config.bos_token_id = 1;
  EXPECT_NE(error_of([&] { (void)make_tokenizer(config); }).find("bos_token_id is 1"),
            std::string::npos);
  config.bos_token_id = -1;
  config.tokenizer = "tokenizer.json";
  EXPECT_NE(error_of([&] { (void)make_tokenizer(config); }).find("tokenizer.json"),
            std::string::npos);
}

TEST(Engine, ATokenizerWithIdsThatTheModelDoesNotKnowIsRefused) {
  for (const std::size_t vocab : {std::size_t{64}, std::size_t{127}}) {
    ScriptedModelOptions options;
    options.vocab_size = vocab;
    const std::string message = error_of([&] {
      const Engine engine({}, make_scripted_model(options, testing::recite({1}, 1)), nullptr,
                          make_ascii_tokenizer());
    });
    EXPECT_NE(message.find("128"), std::string::npos) << message;
    EXPECT_NE(message.find(std::to_string(vocab)), std::string::npos) << message;
  }
}

}  // namespace
}  // namespace spel::engine
