#include "engine/document/convert.h"

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <functional>
#include <gtest/gtest.h>
#include <sstream>
#include <sys/resource.h>

#include "engine/arch/directory_names.h"
#include "engine/document/random_source.h"
#include "engine/document/spelw.h"
#include "engine/files/safetensors.h"
#include "engine/tools/tool.h"
#include "model_fixtures.h"

namespace spel::engine {
namespace {

using testing::read_bytes;
using testing::ScratchFolder;
using testing::tiny_ascii_config;
using testing::tiny_config;
using testing::tiny_golden;
using testing::write_bytes;

const std::filesystem::path kShippedModel =
    std::filesystem::path(SPEL_SOURCE_DIR) / "engine" / "models" / "spel-21m";

class Convert : public ::testing::Test {
 protected:
  using Tool = int (*)(std::span<const std::string>, tools::ToolStreams);

  int run(Tool tool, const std::vector<std::string>& args) {
    out_.str("");
    err_.str("");
    return tool(args, {out_, err_});
  }

  [[nodiscard]] std::string path(const char* name) const {
    return (folder_.path() / name).string();
  }

  ScratchFolder folder_;
  std::ostringstream out_;
  std::ostringstream err_;
};

TEST_F(Convert, DirectoryToSpelwAndBackGivesTheSameFiles) {
  write_model(*random_source(tiny_config(), 7), tiny_golden(tiny_config()), path("a"),
              ModelForm::kDirectory);
  ASSERT_EQ(run(tools::convert_weights_main, {path("a"), path("b.spelw")}), 0) << err_.str();
  ASSERT_EQ(run(tools::convert_weights_main, {path("b.spelw"), path("c")}), 0) << err_.str();
  for (const char* file : {kTargetName, kDraftName, kGoldenName}) {
    const std::vector<std::byte> before = read_bytes(folder_.path() / "a" / file);
    const std::vector<std::byte> after = read_bytes(folder_.path() / "c" / file);
    const SafetensorsView a(before, file);
    const SafetensorsView c(after, file);
    ASSERT_EQ(a.tensors().size(), c.tensors().size());
    for (const TensorView& tensor : a.tensors()) {
      const TensorView* other = c.find(tensor.name);
      ASSERT_NE(other, nullptr);
      EXPECT_EQ(other->dtype, tensor.dtype);
      EXPECT_TRUE(std::ranges::equal(other->data, tensor.data)) << tensor.name;
    }
  }
}

TEST_F(Convert, NameAndIdentityGoThereAndBackByteForByte) {
  ASSERT_EQ(run(tools::convert_weights_main, {kShippedModel.string(), path("b.spelw")}), 0)
      << err_.str();
  EXPECT_EQ(err_.str(), "");
  ASSERT_EQ(run(tools::convert_weights_main, {path("b.spelw"), path("c")}), 0) << err_.str();
  EXPECT_EQ(err_.str(), "");
  const auto source = open_model(kShippedModel);
  for (const char* name : {"b.spelw", "c"}) {
    const auto converted = open_model(path(name));
    EXPECT_EQ(converted->sha256(), source->sha256()) << name;
    EXPECT_EQ(converted->config().name, source->config().name) << name;
  }
  for (const char* file : {kConfigName, kTargetName, kDraftName}) {
    EXPECT_EQ(read_bytes(folder_.path() / "c" / file), read_bytes(kShippedModel / file)) << file;
  }
}

TEST_F(Convert, ABareFileIsAsTheFormPrescribesAndSaysThatTheIdentityIsAnother) {
  ASSERT_EQ(run(tools::convert_weights_main, {kShippedModel.string(), path("b.spelw"), "--bare"}),
            0)
      << err_.str();
  EXPECT_EQ(std::filesystem::file_size(path("b.spelw")), 113'762'508U);
  EXPECT_NE(err_.str().find(open_model(kShippedModel)->sha256()), std::string::npos) << err_.str();
}

TEST_F(Convert, TheTextsOfADirectoryAreHeldToTheFile) {
  write_model(*random_source(tiny_config(), 7), std::nullopt, path("a"), ModelForm::kDirectory);
  ASSERT_EQ(run(tools::convert_weights_main, {path("a"), path("b.spelw")}), 0) << err_.str();
  const std::vector<std::byte> good = read_bytes(path("b.spelw"));
  const std::size_t texts = spelw_file_bytes(tiny_config(), false);
  const auto problem = [&](const std::function<void(std::vector<std::byte>&)>& spoil) {
    std::vector<std::byte> bytes = good;
    spoil(bytes);
    return testing::error_of([&] { (void)parse_spelw(bytes, "f.spelw"); });
  };
  const auto replace = [&](const std::string& from, const std::string& to) {
    return problem([&](std::vector<std::byte>& bytes) {
      const auto wanted = testing::bytes_of(from);
      const auto at = std::search(bytes.begin() + static_cast<std::ptrdiff_t>(texts), bytes.end(),
                                  wanted.begin(), wanted.end());
      ASSERT_NE(at, bytes.end()) << from;
      std::ranges::copy(testing::bytes_of(to), at);
    });
  };
  EXPECT_NE(problem([&](auto& bytes) { bytes[texts] = std::byte{0}; }).find("SPELD001"),
            std::string::npos);
  EXPECT_NE(problem([&](auto& bytes) { bytes.resize(texts + 5); }).find("SPELD001"),
            std::string::npos);
  EXPECT_NE(problem([&](auto& bytes) { bytes.pop_back(); }).find("should take"), std::string::npos);
  EXPECT_NE(problem([&](auto& bytes) { bytes.push_back({}); }).find("should take"),
            std::string::npos);
  EXPECT_NE(problem([&](auto& bytes) { bytes[texts + 11] = std::byte{255}; }).find("at most"),
            std::string::npos);
  EXPECT_NE(replace("\"vocab_size\": 5", "\"vocab_size\": 6").find("another shape"),
            std::string::npos);
  EXPECT_NE(replace("norm.weight\":{\"dtype", "nurm.weight\":{\"dtype").find("nurm.weight"),
            std::string::npos);
  EXPECT_NE(replace("\"dtype\":\"U8\"", "\"dtype\":\"I8\"").find("expected U8"), std::string::npos);
}

TEST_F(Convert, AFileThatIsThereIsReplacedOnlyWhenForced) {
  for (const char* form : {"spelw", "directory"}) {
    const std::string target = path("x") + form;
    testing::write_bytes(target, testing::bytes_of("precious"));
    const std::vector<std::string> args = {kShippedModel.string(), target, "--to", form};
    EXPECT_EQ(run(tools::convert_weights_main, args), 2);
    EXPECT_NE(err_.str().find(target + " exists"), std::string::npos) << err_.str();
    EXPECT_EQ(read_bytes(target).size(), 8U);
  }
  ASSERT_EQ(run(tools::convert_weights_main,
                {kShippedModel.string(), path("xspelw"), "--to", "spelw", "--force"}),
            0)
      << err_.str();
  EXPECT_EQ(open_model(path("xspelw"))->config().name, "spel-21m");
  EXPECT_EQ(folder_.entries(), 2U);
}

TEST_F(Convert, ADirectoryHasTheTokenizerOfTheShippedModel) {
  ModelConfig config = tiny_config();
  config.vocab_size = 128;
  config.max_seq = 4096;
  write_model(*random_source(config, 7), std::nullopt, path("a"), ModelForm::kDirectory);
  for (const char* file : {kTokenizerName, kTokenizerConfigName}) {
    EXPECT_EQ(read_bytes(folder_.path() / "a" / file), read_bytes(kShippedModel / file)) << file;
  }
}

TEST_F(Convert, SpelwToDirectoryAndBackGivesTheSameQuantisedDraft) {
  write_model(*random_source(tiny_config(), 7), std::nullopt, path("a.spelw"), ModelForm::kSpelw);
  ASSERT_EQ(run(tools::convert_weights_main, {path("a.spelw"), path("b")}), 0) << err_.str();
  ASSERT_EQ(run(tools::convert_weights_main, {path("b"), path("c.spelw")}), 0) << err_.str();
  const auto a = open_model(path("a.spelw"));
  const auto c = open_model(path("c.spelw"));
  for (const TensorSpec& tensor : tensor_layout(tiny_config()).in_file_order()) {
    if (!tensor.in_draft) {
      EXPECT_EQ(a->read_values(tensor), c->read_values(tensor));
    } else if (tensor.role == TensorRole::kProjection) {
      EXPECT_EQ(a->read_int8(tensor).values, c->read_int8(tensor).values);
      EXPECT_EQ(a->read_int8(tensor).scales, c->read_int8(tensor).scales);
    } else if (tensor.role == TensorRole::kMlp) {
      EXPECT_EQ(a->read_ternary(tensor).packed, c->read_ternary(tensor).packed);
      EXPECT_EQ(a->read_ternary(tensor).scales, c->read_ternary(tensor).scales);
    }
  }
}

TEST_F(Convert, ValuesThatAreNotBf16ExactStayF32) {
  write_model(*random_source(tiny_config(), 7), std::nullopt, path("a.spelw"), ModelForm::kSpelw);
  std::vector<std::byte> bytes = read_bytes(path("a.spelw"));
  bytes[64] ^= std::byte{1};  // The lowest bit of the first embedding value.
  write_bytes(path("a.spelw"), bytes);
  ASSERT_EQ(run(tools::convert_weights_main, {path("a.spelw"), path("b")}), 0) << err_.str();
  const std::vector<std::byte> target = read_bytes(folder_.path() / "b" / kTargetName);
  const SafetensorsView view(target, "t");
  EXPECT_EQ(view.find("embed_tokens.weight")->dtype, DType::kF32);
  EXPECT_EQ(view.find("lm_head.weight")->dtype, DType::kBf16);
  ASSERT_EQ(run(tools::convert_weights_main, {path("b"), path("c.spelw"), "--bare"}), 0)
      << err_.str();
  const std::size_t target_bytes = tiny_config().target_parameters() * sizeof(float);
  const std::vector<std::byte> again = read_bytes(path("c.spelw"));
  EXPECT_TRUE(std::ranges::equal(std::span(again).first(64 + target_bytes),
                                 std::span(bytes).first(64 + target_bytes)));
}

/// Makes writes past `bytes` of a file fail, as on a full disk.
class FileSizeLimit {
 public:
  explicit FileSizeLimit(rlim_t bytes) : old_handler_(std::signal(SIGXFSZ, SIG_IGN)) {
    getrlimit(RLIMIT_FSIZE, &old_);
    const rlimit limit = {bytes, old_.rlim_max};
    setrlimit(RLIMIT_FSIZE, &limit);
  }
  ~FileSizeLimit() {
    setrlimit(RLIMIT_FSIZE, &old_);
    std::signal(SIGXFSZ, old_handler_);
  }
  FileSizeLimit(const FileSizeLimit&) = delete;
  FileSizeLimit& operator=(const FileSizeLimit&) = delete;

 private:
  void (*old_handler_)(int);
  rlimit old_{};
};

TEST_F(Convert, AFullDiskLeavesNothingBehind) {
  for (const char* form : {"spelw", "directory"}) {
    for (const rlim_t bytes : {0U, 64U, 4000U}) {
      const FileSizeLimit limit(bytes);
      EXPECT_EQ(run(tools::convert_weights_main, {"--random", path("x"), "--to", form, "--config",
                                                  "d_model=32,n_layers=10,n_heads=2,head_dim=16,"
                                                  "d_ff=32,vocab=16"}),
                1);
      EXPECT_NE(err_.str().find("cannot write"), std::string::npos) << err_.str();
      EXPECT_EQ(folder_.entries(), 0U);
    }
  }
}

TEST_F(Convert, ADraftOfOtherQuantisersIsRefused) {
  write_model(*random_source(tiny_config(), 7), std::nullopt, path("a"), ModelForm::kDirectory);
  std::filesystem::remove(folder_.path() / "a" / kSumsName);
  const std::filesystem::path draft = folder_.path() / "a" / kDraftName;
  std::vector<std::byte> bytes = read_bytes(draft);
  const std::span<const std::byte> codes =
      SafetensorsView(bytes, "d").find("layers.0.mixer.qkv_proj.weight_q8")->data;
  const auto offset = static_cast<std::size_t>(codes.data() - bytes.data());
  for (std::size_t i = 0; i < tiny_config().d_model; ++i) {
    bytes[offset + i] = std::byte{5};  // A row whose largest code is not 127.
  }
  write_bytes(draft, bytes);
  EXPECT_NE(run(tools::convert_weights_main, {path("a"), path("b.spelw")}), 0);
  EXPECT_NE(err_.str().find("layers.0.mixer.qkv_proj.weight"), std::string::npos) << err_.str();
  EXPECT_EQ(folder_.entries(), 1U);
}

TEST_F(Convert, RandomDefaultShapeWithGoldenHasTheDocumentsSizeAndVerifies) {
  ASSERT_EQ(run(tools::convert_weights_main, {"--random", path("r.spelw"), "--golden"}), 0)
      << err_.str();
  EXPECT_EQ(std::filesystem::file_size(path("r.spelw")), 113'762'508U);
  ASSERT_EQ(run(tools::verify_weights_main, {path("r.spelw")}), 0) << out_.str() << err_.str();
  EXPECT_NE(out_.str().find("max_abs=0  argmax=16/16"), std::string::npos) << out_.str();
  EXPECT_NE(out_.str().find("21352044"), std::string::npos) << out_.str();
}

TEST_F(Convert, BadCommandLinesAreRefusedWithStatusTwo) {
  for (const std::vector<std::string>& args :
       std::vector<std::vector<std::string>>{{},
                                             {"a"},
                                             {"a", "b", "c"},
                                             {"--random"},
                                             {"--random", "a", "b"},
                                             {"--to", "gguf", "a", "b"},
                                             {"--to"},
                                             {"--wat", "a", "b"},
                                             {"--random", "x", "--seed", "-1"},
                                             {"--random", "x", "--seed", "1", "--seed", "2"},
                                             {"--random", "x", "--config", "d_model"},
                                             {"--random", "x", "--config", "depth=3"},
                                             {"--random", "x", "--config", "d_model=0"},
                                             {"--random", "x", "--config", "d_model=1e3"},
                                             {"--random", "x", "--config", "draft_map=0:99"},
                                             {"a", "b", "--config", "d_model=8"}}) {
    EXPECT_EQ(run(tools::convert_weights_main, args), 2) << err_.str();
    EXPECT_NE(err_.str(), "");
  }
  EXPECT_EQ(folder_.entries(), 0U);
}

TEST_F(Convert, TheShapeOptionBuildsOtherShapes) {
  ASSERT_EQ(run(tools::convert_weights_main,
                {"--random", path("r.spelw"), "--seed=9", "--golden", "--config",
                 "d_model=16,n_layers=4,n_heads=2,head_dim=8,d_ff=20,vocab=128,max_seq=16,"
                 "attn_period=2,draft_map=0:1:2:3"}),
            0)
      << err_.str();
  EXPECT_EQ(run(tools::verify_weights_main, {path("r.spelw"), "--config", "d_model=16,vocab=128"}),
            0)
      << err_.str();
  EXPECT_EQ(run(tools::verify_weights_main, {path("r.spelw"), "--config", "d_ff=24"}), 2);
  EXPECT_NE(err_.str().find("the file has 20"), std::string::npos) << err_.str();
}

TEST_F(Convert, VerifyingPassesTheShippedModel) {
  ASSERT_EQ(run(tools::verify_weights_main, {kShippedModel.string()}), 0)
      << out_.str() << err_.str();
  EXPECT_NE(out_.str().find("argmax=16/16"), std::string::npos) << out_.str();
}

TEST_F(Convert, VerifyingTakesTheModelOfTheEnvironmentWhereNoneIsNamed) {
  ::setenv("SPEL_MODEL", path("none").c_str(), 1);
  EXPECT_NE(run(tools::verify_weights_main, {}), 0);
  EXPECT_NE(err_.str().find(path("none")), std::string::npos) << err_.str();
  ::setenv("SPEL_MODEL", kShippedModel.c_str(), 1);
  EXPECT_EQ(run(tools::verify_weights_main, {}), 0) << out_.str() << err_.str();
  ::unsetenv("SPEL_MODEL");
}

TEST_F(Convert, VerifyingFailsOnWrongLogits) {
  const ModelConfig config = tiny_ascii_config();
  write_model(*random_source(config, 7), tiny_golden(config), path("a.spelw"), ModelForm::kSpelw);
  EXPECT_EQ(run(tools::verify_weights_main, {path("a.spelw")}), 1);
  EXPECT_NE(out_.str().find("FAIL"), std::string::npos) << out_.str();
}

TEST_F(Convert, VerifyingWithoutGoldenLogitsNeedsToBeAskedFor) {
  write_model(*random_source(tiny_ascii_config(), 7), std::nullopt, path("a.spelw"),
              ModelForm::kSpelw);
  EXPECT_EQ(run(tools::verify_weights_main, {path("a.spelw")}), 1);
  EXPECT_EQ(run(tools::verify_weights_main, {path("a.spelw"), "--no-golden"}), 0);
}

TEST_F(Convert, VerifyingRefusesAVocabularyThatIsNotTheTokenizersNamingBothSizes) {
  for (const std::uint32_t vocab : {64U, 127U, 129U, 100'000U}) {
    ModelConfig config = tiny_config();
    config.vocab_size = vocab;
    const std::string name = path("m") + std::to_string(vocab);
    write_model(*random_source(config, 7), std::nullopt, name, ModelForm::kSpelw);
    EXPECT_EQ(run(tools::verify_weights_main, {name, "--no-golden"}), 1);
    EXPECT_NE(err_.str().find("vocab_size is " + std::to_string(vocab)), std::string::npos);
    EXPECT_NE(err_.str().find("128 tokens"), std::string::npos) << err_.str();
    EXPECT_NE(err_.str().find(name), std::string::npos) << err_.str();
  }
}

TEST_F(Convert, WritingAModelThatNothingHereRunsSaysSo) {
  EXPECT_EQ(
      run(tools::convert_weights_main, {"--random", path("x"), "--config",
                                        "d_model=32,n_layers=10,n_heads=2,head_dim=16,d_ff=32,"
                                        "vocab=16"}),
      0);
  EXPECT_NE(err_.str().find("vocab_size is 16"), std::string::npos) << err_.str();
}

TEST_F(Convert, TheToleranceVariableIsCheckedAndUsed) {
  for (const char* bad : {"", "x", "-1", "0", "nan", "inf", "1e-3x"}) {
    ::setenv("SPEL_VERIFY_TOL", bad, 1);
    EXPECT_EQ(run(tools::verify_weights_main, {path("none")}), 2) << bad;
    EXPECT_NE(err_.str().find("SPEL_VERIFY_TOL"), std::string::npos) << err_.str();
  }
  ::setenv("SPEL_VERIFY_TOL", "1e-30", 1);
  EXPECT_EQ(run(tools::verify_weights_main, {kShippedModel.string()}), 1);
  ::unsetenv("SPEL_VERIFY_TOL");
}

}  // namespace
}  // namespace spel::engine
