#include "engine/model/weights.h"

#include <ctime>
#include <gtest/gtest.h>

#include "engine/document/convert.h"
#include "engine/document/random_source.h"
#include "kernels/scalar_math.h"
#include "model_fixtures.h"

namespace spel::engine {
namespace {

using testing::read_bytes;
using testing::ScratchFolder;
using testing::tiny_config;
using testing::write_bytes;

const std::filesystem::path kShippedModel =
    std::filesystem::path(SPEL_SOURCE_DIR) / "engine" / "models" / "spel-21m";

TEST(LoadModel, LoadsTheShippedModel) {
  const auto weights = load_model(kShippedModel, WeightsDtype::kBf16);
  EXPECT_EQ(weights->target.spec.parameters(), 21'352'044U);
  EXPECT_EQ(weights->sha256.size(), 64U);
  ASSERT_EQ(weights->target.layers.size(), 12U);
  ASSERT_EQ(weights->draft.value().layers.size(), 4U);
  const LayerWeights& attention = weights->target.layers[3];
  EXPECT_EQ(std::get<kernels::DenseMatrix>(std::get<AttentionWeights>(attention.mixer).in).type(),
            kernels::DenseType::kBf16);
  EXPECT_EQ(std::get<kernels::DenseMatrix>(attention.gate_up).rows(), 2048U);
  EXPECT_EQ(std::get<DeltaWeights>(weights->target.layers[4].mixer).conv.size(), 3U * 384U);
  EXPECT_EQ(std::get<kernels::TernaryMatrix>(weights->draft->layers[1].gate_up).rows(), 2048U);
  ASSERT_TRUE(weights->golden);
  EXPECT_EQ(weights->golden->tokens.size(), 16U);
}

TEST(LoadModel, GatesGoThroughTheSigmoidAndTheConvolutionIsTransposed) {
  const auto source = random_source(tiny_config(), 5);
  const auto weights = build_weights(*source, WeightsDtype::kF32);
  const LayerTensors layer = tensor_layout(tiny_config()).target[1];
  const std::vector<float> conv = source->read_values(layer.conv[0]);
  const std::vector<float> decay = source->read_values(*layer.decay);
  const auto& loaded = std::get<DeltaWeights>(weights->target.layers[1].mixer);
  for (std::size_t i = 0; i < tiny_config().d_model; ++i) {
    for (std::size_t tap = 0; tap < 3; ++tap) {
      EXPECT_EQ(loaded.conv[tap * tiny_config().d_model + i], conv[3 * i + tap]);
    }
  }
  ASSERT_EQ(loaded.decay.size(), tiny_config().n_heads);
  for (std::size_t head = 0; head < decay.size(); ++head) {
    EXPECT_EQ(loaded.decay[head], kernels::sigmoid_f32(decay[head]));
  }
}

TEST(LoadModel, MatricesThatAreNotBf16ExactFallBackOneByOne) {
  const ScratchFolder folder;
  const std::filesystem::path path = folder.path() / "a.spelw";
  write_model(*random_source(tiny_config(), 5), std::nullopt, path, ModelForm::kSpelw);
  std::vector<std::byte> bytes = read_bytes(path);
  const std::size_t qkv = 64 + 4 * (tiny_config().vocab_size * 8 + 8);
  bytes[qkv] ^= std::byte{1};
  write_bytes(path, bytes);
  const auto weights = load_model(path, WeightsDtype::kBf16);
  const auto& mixer = std::get<DeltaWeights>(weights->target.layers[0].mixer);
  EXPECT_EQ(std::get<kernels::DenseMatrix>(mixer.in).type(), kernels::DenseType::kF32);
  EXPECT_EQ(std::get<kernels::DenseMatrix>(mixer.out).type(), kernels::DenseType::kBf16);
}

TEST(LoadModel, TheIdentityIsOfTheFileAndStable) {
  const ScratchFolder folder;
  const auto source = random_source(tiny_config(), 5);
  write_model(*source, std::nullopt, folder.path() / "a", ModelForm::kDirectory);
  write_model(*source, std::nullopt, folder.path() / "b", ModelForm::kDirectory);
  EXPECT_EQ(load_model(folder.path() / "a", WeightsDtype::kF32)->sha256,
            load_model(folder.path() / "b", WeightsDtype::kBf16)->sha256);
  EXPECT_NE(random_model(tiny_config(), 5, WeightsDtype::kF32)->sha256,
            random_model(tiny_config(), 6, WeightsDtype::kF32)->sha256);
}

TEST(LoadModel, EveryCheckTogetherStaysFast) {
  // Checks make loaders slow unnoticed. Processor time, so that a busy machine does not matter; the
  // bound leaves room for sanitizers and catches what costs per weight.
  const std::clock_t start = std::clock();
  (void)load_model(kShippedModel, WeightsDtype::kBf16);
  EXPECT_LT(static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC, 5.0);
}

}  // namespace
}  // namespace spel::engine
