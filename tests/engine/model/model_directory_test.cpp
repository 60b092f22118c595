#include "engine/document/model_directory.h"

#include <cstring>
#include <fstream>
#include <gtest/gtest.h>
#include <limits>

#include "engine/arch/directory_names.h"
#include "engine/document/random_source.h"
#include "engine/document/spelw.h"
#include "engine/files/safetensors.h"
#include "model_fixtures.h"

namespace spel::engine {
namespace {

using testing::error_of;
using testing::read_bytes;
using testing::ScratchFolder;
using testing::tiny_config;
using testing::tiny_golden;
using testing::write_bytes;

class ModelDirectory : public ::testing::Test {
 protected:
  void SetUp() override {
    write_model_directory(*random_source(tiny_config(), 7), tiny_golden(tiny_config()), model_);
  }

  [[nodiscard]] std::string problem() const {
    return error_of([&] { (void)open_model_directory(model_); });
  }

  void without_sums() const { std::filesystem::remove(model_ / kSumsName); }

  /// Changes one tensor's bytes in place.
  template <typename Value>
  void spoil(const char* file, const std::string& tensor, std::size_t index, Value value) const {
    std::vector<std::byte> bytes = read_bytes(model_ / file);
    const std::size_t offset = static_cast<std::size_t>(
        SafetensorsView(bytes, file).find(tensor)->data.data() - bytes.data());
    std::memcpy(bytes.data() + offset + index * sizeof(value), &value, sizeof(value));
    write_bytes(model_ / file, bytes);
  }

  void replace_in(const char* file, const std::string& from, const std::string& to) const {
    const std::vector<std::byte> bytes = read_bytes(model_ / file);
    std::string text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    ASSERT_NE(text.find(from), std::string::npos);
    text.replace(text.find(from), from.size(), to);
    write_bytes(model_ / file, testing::bytes_of(text));
  }

  ScratchFolder folder_;
  std::filesystem::path model_ = folder_.path() / "tiny";
};

TEST_F(ModelDirectory, HoldsWhatItWasMadeOf) {
  const auto original = random_source(tiny_config(), 7);
  const auto source = open_model_directory(model_);
  for (const TensorSpec& tensor : tensor_layout(tiny_config()).in_file_order()) {
    if (tensor.in_draft && tensor.role == TensorRole::kProjection) {
      EXPECT_EQ(source->read_int8(tensor).values, original->read_int8(tensor).values);
      EXPECT_EQ(source->read_int8(tensor).scales, original->read_int8(tensor).scales);
    } else if (tensor.in_draft && tensor.role == TensorRole::kMlp) {
      EXPECT_EQ(source->read_ternary(tensor).packed, original->read_ternary(tensor).packed);
      EXPECT_EQ(source->read_ternary(tensor).scales, original->read_ternary(tensor).scales);
    } else {
      EXPECT_EQ(source->read_values(tensor), original->read_values(tensor)) << describe(tensor);
    }
  }
  ASSERT_TRUE(source->golden());
  EXPECT_EQ(source->golden()->target_logits, tiny_golden(tiny_config()).target_logits);
}

TEST_F(ModelDirectory, StoresBf16ExactTargetsAsBf16) {
  const std::vector<std::byte> bytes = read_bytes(model_ / kTargetName);
  const SafetensorsView view(bytes, "f");
  for (const TensorView& tensor : view.tensors()) {
    EXPECT_EQ(tensor.dtype, DType::kBf16) << tensor.name;
  }
}

TEST_F(ModelDirectory, CopiesRoundTripEveryBit) {
  write_model_directory(*open_model_directory(model_), std::nullopt, folder_.path() / "copy");
  for (const char* file : {kConfigName, kTargetName, kDraftName, kGoldenName, kSumsName}) {
    EXPECT_EQ(read_bytes(folder_.path() / "copy" / file), read_bytes(model_ / file)) << file;
  }
}

TEST_F(ModelDirectory, GoldenAndSumsAreOptional) {
  without_sums();
  std::filesystem::remove(model_ / kGoldenName);
  EXPECT_EQ(problem(), "");
  EXPECT_FALSE(open_model_directory(model_)->golden());
}

TEST_F(ModelDirectory, EachMissingFileIsNamed) {
  for (const char* file : {kConfigName, kTargetName, kDraftName}) {
    std::filesystem::rename(model_ / file, folder_.path() / "aside");
    EXPECT_NE(problem().find((model_ / file).string()), std::string::npos) << problem();
    std::filesystem::rename(folder_.path() / "aside", model_ / file);
  }
  EXPECT_EQ(problem(), "");
}

TEST_F(ModelDirectory, ChangedBytesAreCaughtByTheSums) {
  spoil(kTargetName, "norm.weight", 0, std::uint16_t{0x3F80});
  EXPECT_NE(problem().find("model.safetensors: SHA-256 is"), std::string::npos) << problem();
  without_sums();
  EXPECT_EQ(problem(), "");
}

TEST_F(ModelDirectory, TheIdentityFollowsTheWeightsAndNotTheGoldenLogits) {
  without_sums();
  const std::string before = open_model_directory(model_)->sha256();
  spoil(kGoldenName, "target_logits", 0, 1.5F);
  EXPECT_EQ(open_model_directory(model_)->sha256(), before);
  spoil(kDraftName, "layers.0.input_norm.weight", 0, 0.5F);
  EXPECT_NE(open_model_directory(model_)->sha256(), before);
}

// ggml-org/llama.cpp#26651
TEST_F(ModelDirectory, ValuesThatAreNotFiniteAreRefusedByFileAndTensor) {
  without_sums();
  constexpr std::uint16_t kNotFinite[] = {0x7F80, 0xFF80, 0x7FC0, 0x7F81};
  for (const std::uint16_t bad : kNotFinite) {
    const std::vector<std::byte> good = read_bytes(model_ / kTargetName);
    spoil(kTargetName, "layers.2.mlp.up_proj.weight", 95, bad);
    const std::string message = problem();
    EXPECT_NE(message.find("model.safetensors: tensor layers.2.mlp.up_proj.weight"),
              std::string::npos)
        << message;
    EXPECT_NE(message.find("value 95"), std::string::npos) << message;
    write_bytes(model_ / kTargetName, good);
  }
  spoil(kDraftName, "layers.3.mixer.qkv_proj.scale", 2, std::numeric_limits<float>::infinity());
  EXPECT_NE(problem().find("draft.safetensors: tensor layers.3.mixer.qkv_proj.scale"),
            std::string::npos)
      << problem();
}

TEST_F(ModelDirectory, DraftValuesOutsideTheFormAreRefused) {
  without_sums();
  const std::vector<std::byte> good = read_bytes(model_ / kDraftName);
  spoil(kDraftName, "layers.0.mixer.out_proj.weight_q8", 3, std::int8_t{-128});
  EXPECT_NE(problem().find("holds -128 at value 3"), std::string::npos) << problem();
  write_bytes(model_ / kDraftName, good);
  spoil(kDraftName, "layers.1.mlp.down_proj.scale", 7, -0.25F);
  EXPECT_NE(problem().find("at row 7"), std::string::npos) << problem();
}

TEST_F(ModelDirectory, TensorsThatDoNotFitTheConfigAreRefused) {
  without_sums();
  replace_in(kConfigName, "\"n_layers\": 5", "\"n_layers\": 6");
  EXPECT_NE(problem().find("layers.5.input_norm.weight is missing"), std::string::npos);
  replace_in(kConfigName, "\"n_layers\": 6", "\"n_layers\": 5");
  replace_in(kConfigName, "\"d_ff\": 12", "\"d_ff\": 16");
  EXPECT_NE(problem().find("has shape [12, 8]; expected [16, 8]"), std::string::npos) << problem();
  replace_in(kConfigName, "\"d_ff\": 16", "\"d_ff\": 12");
  replace_in(kConfigName, "[0, 1, 3, 4]", "[0, 1, 3]");
  EXPECT_NE(problem().find("does not belong"), std::string::npos) << problem();
  replace_in(kConfigName, "[0, 1, 3]", "[0, 1, 3, 4]");
  EXPECT_EQ(problem(), "");
}

TEST_F(ModelDirectory, TensorsOfAnotherTypeAreRefused) {
  without_sums();
  replace_in(kDraftName, "\"I8\"", "\"U8\"");
  EXPECT_NE(problem().find("is U8; expected I8"), std::string::npos) << problem();
}

TEST_F(ModelDirectory, AnExistingDirectoryIsNotOverwritten) {
  const auto source = random_source(tiny_config(), 8);
  const std::vector<std::byte> before = read_bytes(model_ / kTargetName);
  EXPECT_NE(error_of([&] { write_model_directory(*source, std::nullopt, model_); }).find("exists"),
            std::string::npos);
  EXPECT_EQ(read_bytes(model_ / kTargetName), before);
  EXPECT_EQ(folder_.entries(), 1U);
  std::filesystem::create_directory(folder_.path() / "empty");
  EXPECT_NO_THROW(write_model_directory(*source, std::nullopt, folder_.path() / "empty" / ""));
  EXPECT_NO_THROW((void)open_model_directory(folder_.path() / "empty"));
}

TEST_F(ModelDirectory, AFailedWriteLeavesNothingBehind) {
  GoldenLogits bad = tiny_golden(tiny_config());
  bad.tokens.pop_back();
  EXPECT_THROW(write_model_directory(*random_source(tiny_config(), 8), bad, folder_.path() / "new"),
               Error);
  EXPECT_EQ(folder_.entries(), 1U);
}

}  // namespace
}  // namespace spel::engine
