// A new architecture is one file and one line of a list; the promises hold for it as for the
// others.
#include "engine/arch/architecture.h"

#include <fstream>
#include <gtest/gtest.h>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "engine/document/random_source.h"
#include "engine/files/safetensors.h"
#include "tests/engine/made_up_architecture.h"
#include "tests/engine/model/model_fixtures.h"
#include "tests/engine/support.h"

namespace spel::engine {
namespace {

using testing::kMadeUp;
using testing::ScratchFolder;

constexpr const char* kConfig = R"({"model_type": "made_up", "hidden_size": 24, "vocab_size": 61,
  "max_position_embeddings": 128, "num_attention_heads": 3, "intermediate_size": 36})";

/// The document's model of the same layers: its values are the made-up one's under other names.
ModelConfig twin_config() {
  ModelConfig config;
  config.name = "twin";
  config.d_model = 24;
  config.n_layers = 6;
  config.n_heads = 3;
  config.head_dim = 8;
  config.d_ff = 36;
  config.vocab_size = 61;
  config.max_seq = 128;
  config.attn_period = 3;
  config.conv_taps = 4;
  config.conv_activation = ConvActivation::kSilu;
  config.read_order = ReadOrder::kAfterDecay;
  config.attn_logit_scale = 8.0F;
  config.rope_theta = 1e5;
  config.rms_norm_eps = 1e-6F;
  config.draft_layers = {0};
  return config;
}

/// The made-up architecture is stored in one form only.
class NoNames final : public TensorNames {
 public:
  [[nodiscard]] std::optional<std::span<const std::uint64_t>> shape(
      std::string_view /*name*/) const override {
    return std::nullopt;
  }
  [[nodiscard]] bool any_begins(std::string_view /*prefix*/) const override { return false; }
};

/// Both models, made of one set of random values.
class ArchitectureTest : public ::testing::Test {
 protected:
  ArchitectureTest() : source_(random_source(twin_config(), 3)) {
    std::ofstream(folder_.path() / "config.json") << kConfig;
    write(tensors());
  }

  [[nodiscard]] static std::vector<TensorSpec> tensors() {
    return kMadeUp.tensors(kMadeUp.spec(kConfig, "config.json"), NoNames()).in_file_order();
  }

  /// The twin's values, in the order of `tensors`: both lists have the same places.
  void write(const std::vector<TensorSpec>& tensors) const {
    const std::vector<TensorSpec> twins = tensor_layout(twin_config()).in_file_order();
    std::vector<TensorHeader> headers;
    std::string data;
    for (std::size_t i = 0; i < tensors.size(); ++i) {
      const TensorSpec& tensor = tensors[i];
      std::vector<std::uint64_t> shape = {tensor.rows};
      if (!tensor.is_vector()) {
        shape.push_back(tensor.cols);
      }
      headers.push_back({tensor.name, DType::kF32, shape});
      const std::vector<float> values = source_->read_values(twins[i]);
      data.append(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float));
    }
    std::ofstream(folder_.path() / "model.safetensors", std::ios::binary)
        << safetensors_header(headers, "made up") << data;
  }

  [[nodiscard]] std::shared_ptr<const ModelWeights> load() const {
    const Architecture& found =
        architecture_of(folder_.path(), std::span(&kMadeUp, std::size_t{1}));
    return load_directory(folder_.path(), found, WeightsDtype::kBf16);
  }

  std::unique_ptr<ModelSource> source_;
  ScratchFolder folder_;
};

std::vector<float> logits_of(const std::shared_ptr<const ModelWeights>& weights) {
  const kernels::Kernels& kernels = kernels::Kernels::select();
  kernels::ThreadPool pool(1);
  const auto model = make_target_model(weights, kernels, pool, {});
  const auto state = model->make_state();
  const auto tokens = testing::random_tokens(40, model->vocab_size(), 8);
  std::vector<float> logits(tokens.size() * model->vocab_size());
  const ForwardItem item{state.get(), tokens, false, LogitRows::kAll, logits.data()};
  model->forward({&item, 1});
  return logits;
}

TEST_F(ArchitectureTest, AMadeUpOneComputesWhatTheSameLayersUnderOtherNamesDo) {
  const auto weights = load();
  EXPECT_EQ(weights->target.spec.layers.size(), 6U);
  EXPECT_FALSE(weights->draft.has_value());
  EXPECT_EQ(logits_of(weights), logits_of(build_weights(*source_, WeightsDtype::kF32)));
}

TEST_F(ArchitectureTest, RandomProposalsChangeNoTokenOfIt) {
  const auto weights = load();
  const kernels::Kernels& kernels = kernels::Kernels::select();
  kernels::ThreadPool pool(1);
  EngineConfig config;
  config.calibrate = false;
  ModelOptions options;
  options.max_batch_rows = config.batch_rows();
  Engine engine(config, make_target_model(weights, kernels, pool, options),
                testing::random_drafter(weights->target.spec.vocab_size),
                testing::byte_tokenizer(weights->target.spec.vocab_size));
  GenerationRequest request;
  request.prompt = testing::random_tokens(9, weights->target.spec.vocab_size, 4);
  request.max_tokens = 80;
  for (const float temperature : {0.0F, 0.9F}) {
    request.sampling.temperature = temperature;
    request.speculation.enabled = false;
    const auto plain = testing::generate(engine, request);
    request.speculation.enabled = true;
    request.speculation.governor = GovernorKind::kOff;
    const auto drafted = testing::generate(engine, request);
    EXPECT_EQ(drafted.tokens, plain.tokens);
    EXPECT_GT(drafted.finish.stats.proposed, 100U);
    EXPECT_LT(drafted.finish.stats.accepted, drafted.finish.stats.proposed / 4);
  }
}

TEST_F(ArchitectureTest, OneThatIsNotListedIsRefusedByName) {
  try {
    (void)architecture_of(folder_.path(), architectures());
    FAIL() << "it was read";
  } catch (const Error& error) {
    const std::string message = error.what();
    EXPECT_NE(message.find("config.json: model_type"), std::string::npos) << message;
    EXPECT_NE(message.find("\"made_up\""), std::string::npos) << message;
    EXPECT_NE(message.find("spel_hybrid"), std::string::npos) << message;
  }
}

TEST_F(ArchitectureTest, AMissingAForeignAndAMisshapenTensorAreRefusedByName) {
  const auto refusal = [&](std::vector<TensorSpec> tensors) {
    write(tensors);
    try {
      (void)load();
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string("loaded");
  };
  std::vector<TensorSpec> renamed = tensors();
  renamed[5].name = "model.visual.patch";
  EXPECT_NE(refusal(renamed).find(tensors()[5].name), std::string::npos);
  std::vector<TensorSpec> misshapen = tensors();
  std::swap(misshapen[2].rows, misshapen[2].cols);
  EXPECT_NE(refusal(misshapen).find(tensors()[2].name + " has shape [24, 72]"), std::string::npos);
}

}  // namespace
}  // namespace spel::engine
