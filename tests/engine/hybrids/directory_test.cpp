// What a downloaded directory may look like, and what is said of one that cannot be served.
#include <array>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <sstream>
#include <string>

#include "config/base/error.h"
#include "engine/arch/architecture.h"
#include "engine/assembled_model.h"
#include "engine/files/mapped_file.h"
#include "engine/files/safetensors.h"
#include "engine/files/tensor_values.h"
#include "engine/text/id_tokenizer.h"
#include "tests/engine/hybrids/fixture.h"
#include "tests/engine/model/model_fixtures.h"

namespace spel::engine {
namespace {

using testing::HybridRun;
using testing::own_hybrid;
using testing::ScratchFolder;

constexpr const char* kSecondShard = "model-00002-of-00002.safetensors";
constexpr const char* kIndex = "model.safetensors.index.json";

/// A copy of one that can be changed.
class Directory {
 public:
  explicit Directory(const char* name) {
    std::filesystem::copy(own_hybrid(name), path(), std::filesystem::copy_options::recursive);
    std::filesystem::remove(path() / "golden.safetensors");
  }

  [[nodiscard]] const std::filesystem::path& path() const { return folder_.path(); }

  void write(const std::string& file, const std::string& text) const {
    std::ofstream(path() / file, std::ios::binary) << text;
  }
  [[nodiscard]] std::string read(const std::string& file) const {
    std::ostringstream text;
    text << std::ifstream(path() / file, std::ios::binary).rdbuf();
    return text.str();
  }
  /// The first `from` of a file becomes `to`.
  void edit(const std::string& file, const std::string& from, const std::string& to) const {
    std::string text = read(file);
    const std::size_t at = text.find(from);
    ASSERT_NE(at, std::string::npos) << from;
    write(file, text.replace(at, from.size(), to));
  }

  [[nodiscard]] std::shared_ptr<const ModelWeights> load() const {
    return load_text_model(path(), WeightsDtype::kBf16).weights;
  }
  [[nodiscard]] std::string refusal() const {
    try {
      (void)load();
    } catch (const Error& error) {
      return error.what();
    }
    return "loaded";
  }

 private:
  ScratchFolder folder_;
};

void expect_words(const std::string& text, std::initializer_list<const char*> words) {
  for (const char* word : words) {
    EXPECT_NE(text.find(word), std::string::npos) << word << " in: " << text;
  }
}

TEST(HybridDirectory, IsAskedWithIdsAndEndsWhereItsFilesSay) {
  const Directory directory("qwen35-shards");
  directory.write("generation_config.json",
                  R"({"eos_token_id": [91, 90, 7], "temperature": 0.5, "top_k": 20})");
  const LoadedModel loaded = load_text_model(directory.path(), WeightsDtype::kBf16);
  EXPECT_EQ(loaded.end_tokens, (std::vector<TokenId>{7, 90, 91}));
  EXPECT_EQ(loaded.defaults.temperature, 0.5F);
  EXPECT_EQ(loaded.defaults.top_k, std::size_t{20});
  EXPECT_FALSE(loaded.config.has_value());
  EXPECT_EQ(loaded.tokenizer->vocab_size(), 96U);
  EXPECT_THROW((void)loaded.tokenizer->encode("text"), NoTokenizerError);
  EXPECT_EQ(loaded.weights->target.spec.name, directory.path().filename());
}

TEST(HybridDirectory, ItsTokenizerMayHaveFewerTokensThanTheModelRowsAndNeverMore) {
  const std::string letters = R"({"model": {"type": "BPE", "merges": [], "vocab": {)";
  // The 256 letters of bytes: more than this model has rows for.
  std::string vocabulary;
  for (unsigned id = 0; id < 256; ++id) {
    const bool printable = (id >= 33 && id <= 126) || (id >= 161 && id <= 172) || id >= 174;
    static unsigned next = 256;
    const unsigned letter = printable ? id : next++;
    std::array<char, 16> escaped{};
    std::snprintf(escaped.data(), escaped.size(), "\"\\u%04x\"", letter);
    vocabulary += (id > 0 ? "," : "") + std::string(escaped.data()) + ":" + std::to_string(id);
  }
  const Directory directory("qwen35-text");
  directory.write("tokenizer.json", letters + vocabulary + "}}}");
  expect_words(directory.refusal(), {"tokenizer.json", "ids up to 255", "vocab_size is 96"});
}

TEST(HybridDirectory, ItsChatTemplateIsTheFileElseTheTokenizersConfiguration) {
  const Directory directory("qwen35-text");
  const auto found = [&] {
    return load_text_model(directory.path(), WeightsDtype::kBf16).chat_template;
  };
  EXPECT_EQ(found(), std::nullopt);
  directory.write("tokenizer_config.json", R"({"chat_template": "{{ one }}"})");
  EXPECT_EQ(found(), "{{ one }}");
  directory.write("chat_template.jinja", "{{ two }}");
  EXPECT_EQ(found(), "{{ two }}");
}

TEST(HybridDirectory, AnEndBeyondTheVocabularyIsRefused) {
  const Directory directory("qwen35-shards");
  directory.write("generation_config.json", R"({"eos_token_id": 96})");
  expect_words(directory.refusal(), {"generation_config.json", "eos_token_id is 96", "96"});
}

TEST(HybridDirectory, AnswersTheSameInF16WhereThatHoldsTheValues) {
  const Directory directory("qwen35-text");
  const MappedFile file(directory.path() / "model.safetensors");
  const SafetensorsView view(file.bytes(), "model.safetensors");
  // A norm's weights, halved in size until they are exact in both.
  const std::string name = "model.layers.0.input_layernorm.weight";
  const TensorView& norm = *view.find(name);
  std::vector<float> values(norm.shape[0]);
  to_float(norm.data, norm.dtype, values);
  std::string halves;
  std::string exact;
  for (const float value : values) {
    const int steps = static_cast<int>(value * 16.0F);
    const auto small = static_cast<float>(steps) / 16.0F;
    exact.append(reinterpret_cast<const char*>(&small), sizeof(small));
    // Of these the half is found by counting: sign, exponent, mantissa.
    std::uint32_t bits = 0;
    std::memcpy(&bits, &small, sizeof(bits));
    const std::uint32_t sign = bits >> 31;
    const std::uint32_t exponent = bits >> 23 & 0xFF;
    const auto half = static_cast<std::uint16_t>(
        sign << 15 | (exponent == 0 ? 0 : (exponent - 112) << 10) | (bits >> 13 & 0x3FF));
    halves.append(reinterpret_cast<const char*>(&half), sizeof(half));
  }
  const auto with = [&](DType dtype, const std::string& data) {
    std::vector<TensorHeader> headers;
    std::string all;
    for (const TensorView& tensor : view.tensors()) {
      const bool changed = tensor.name == name;
      headers.push_back({tensor.name, changed ? dtype : tensor.dtype, tensor.shape});
      all += changed ? data
                     : std::string(reinterpret_cast<const char*>(tensor.data.data()),
                                   tensor.data.size());
    }
    // A new file: the old one is still mapped.
    std::filesystem::remove(directory.path() / "model.safetensors");
    directory.write("model.safetensors", safetensors_header(headers, "edited") + all);
    return HybridRun(directory.load(), kernels::attainable_isas().front()).logits({1, 2, 3});
  };
  EXPECT_EQ(with(DType::kF16, halves), with(DType::kF32, exact));
}

TEST(HybridDirectory, ShardsThatDoNotFitTheirIndexAreRefused) {
  {
    const Directory directory("qwen35-shards");
    std::filesystem::remove(directory.path() / kSecondShard);
    expect_words(directory.refusal(), {kSecondShard});
  }
  {
    const Directory directory("qwen35-shards");
    directory.edit(kIndex, kSecondShard, "../" + std::string(kSecondShard));
    expect_words(directory.refusal(), {"weight_map", "the same directory"});
  }
  {
    const Directory directory("qwen35-shards");
    directory.edit(kIndex, "model-00001-of-00002.safetensors", kSecondShard);
    expect_words(directory.refusal(), {kSecondShard, "is missing", kIndex});
  }
  {
    const Directory directory("qwen35-shards");
    std::filesystem::copy_file(directory.path() / kSecondShard,
                               directory.path() / "again.safetensors");
    directory.edit(kIndex, "model-00001-of-00002.safetensors", "again.safetensors");
    expect_words(directory.refusal(), {"is in another shard too"});
  }
  {
    const Directory directory("qwen35-shards");
    directory.write(kIndex, "{}");
    expect_words(directory.refusal(), {kIndex, "weight_map is missing"});
  }
}

TEST(HybridDirectory, WhatIsNotImplementedIsRefusedByName) {
  struct Case {
    const char* model;
    const char* from;
    const char* to;
    std::initializer_list<const char*> words;
  };
  const Case cases[] = {
      {"qwen35-text",
       R"("model_type": "qwen3_5_text")",
       R"("model_type": "qwen3_5_moe_text")",
       {"config.json: model_type", "qwen3_5_moe_text", "qwen3_5"}},
      {"qwen35-text",
       R"("rope_type": "default")",
       R"("rope_type": "yarn")",
       {"rope_parameters.rope_type", "yarn", "default"}},
      {"qwen3-next",
       R"("rope_scaling": null)",
       R"("rope_scaling": {"type": "linear"})",
       {"rope_scaling", "scaled rotary"}},
      {"qwen35-text", R"("hidden_act": "silu")", R"("hidden_act": "gelu")", {"hidden_act", "gelu"}},
      {"qwen35-text",
       R"("attention_bias": false)",
       R"("attention_bias": true)",
       {"attention_bias is true"}},
      {"qwen35-text",
       R"("full_attention")",
       R"("sliding_attention")",
       {"layer_types[3]", "sliding_attention"}},
      {"qwen35-text",
       R"("num_hidden_layers": 4)",
       R"("num_hidden_layers": 5)",
       {"layer_types is 4 entries", "5"}},
      {"qwen35-text",
       R"("linear_num_value_heads": 6)",
       R"("linear_num_value_heads": 5)",
       {"linear_num_value_heads is 5", "a multiple of linear_num_key_heads (2)"}},
      {"qwen35-text",
       R"("num_key_value_heads": 1)",
       R"("num_key_value_heads": 3)",
       {"num_attention_heads is 2", "a multiple of num_key_value_heads (3)"}},
      {"qwen35-text", R"("eos_token_id": 90)", R"("eos_token_id": 96)", {"eos_token_id", "96"}},
      {"qwen35-text",
       R"("hidden_size": 32)",
       R"("hidden_size": 40)",
       {"model.safetensors", "has shape", "from config.json"}},
      {"qwen35-text", R"("hidden_size": 32)", R"("hidden_siz": 32)", {"hidden_size is missing"}},
      {"qwen35-text",
       R"("tie_word_embeddings": true)",
       R"("tie_word_embeddings": false)",
       {"lm_head.weight is missing"}},
      {"qwen35-shards",
       R"("hidden_size": 32)",
       R"("hidden_size": "32")",
       {"text_config.hidden_size"}},
  };
  for (const Case& one : cases) {
    SCOPED_TRACE(one.to);
    const Directory directory(one.model);
    directory.edit("config.json", one.from, one.to);
    expect_words(directory.refusal(), one.words);
  }
}

}  // namespace
}  // namespace spel::engine
