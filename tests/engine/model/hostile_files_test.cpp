// Files made to break a loader. Each test named after a report repeats the input of a public bug of
// a server like this one; the report's id is in the comment above it.
#include <algorithm>
#include <cstring>
#include <fstream>
#include <gtest/gtest.h>
#include <sstream>
#include <sys/resource.h>

#include "engine/arch/directory_names.h"
#include "engine/document/convert.h"
#include "engine/document/model_directory.h"
#include "engine/document/random_source.h"
#include "engine/document/spelw.h"
#include "engine/files/safetensors.h"
#include "engine/model/weights.h"
#include "engine/tools/tool.h"
#include "model_fixtures.h"

namespace spel::engine {
namespace {

using testing::bytes_of;
using testing::error_of;
using testing::read_bytes;
using testing::ScratchFolder;
using testing::TestRandom;
using testing::tiny_config;
using testing::tiny_golden;
using testing::write_bytes;

constexpr std::size_t kHeaderFields = 14;
constexpr const char* kFieldNames[kHeaderFields] = {
    "d_model",      "n_layers",     "n_heads",      "head_dim",       "d_ff",
    "vocab",        "max_seq",      "attn_period",  "n_draft_layers", "draft.layers",
    "draft.layers", "draft.layers", "draft.layers", "flags"};

class HostileFiles : public ::testing::Test {
 protected:
  void SetUp() override {
    const auto source = random_source(tiny_config(), 7);
    write_model(*source, tiny_golden(tiny_config()), directory_, ModelForm::kDirectory);
    write_model(*source, tiny_golden(tiny_config()), spelw_, ModelForm::kSpelw);
    spelw_bytes_ = read_bytes(spelw_);
  }

  [[nodiscard]] static std::string problem_in(const std::filesystem::path& path) {
    return error_of([&] { (void)load_model(path, WeightsDtype::kF32); });
  }

  /// A SPELW001 file with one header integer replaced.
  [[nodiscard]] std::string with_field(std::size_t field, std::uint32_t value) const {
    std::vector<std::byte> bytes = spelw_bytes_;
    std::memcpy(bytes.data() + 8 + 4 * field, &value, sizeof(value));
    return error_of([&] { (void)parse_spelw(bytes, "f"); });
  }

  ScratchFolder folder_;
  std::filesystem::path directory_ = folder_.path() / "tiny";
  std::filesystem::path spelw_ = folder_.path() / "tiny.spelw";
  std::vector<std::byte> spelw_bytes_;
};

// ollama/ollama#12101: an integer of 0 in the header divides by zero.
TEST_F(HostileFiles, HeaderIntegersOfZeroAreRefusedByName) {
  for (std::size_t field = 0; field < kHeaderFields; ++field) {
    const std::string message = with_field(field, 0);
    const bool is_legal = field == 9;  // Draft layer 0 may well come from layer 0.
    if (!is_legal) {
      EXPECT_NE(message, "") << kFieldNames[field];
    }
    if (field < 9) {
      EXPECT_NE(message.find(kFieldNames[field]), std::string::npos) << message;
      EXPECT_NE(message.find("byte " + std::to_string(8 + 4 * field)), std::string::npos)
          << message;
    }
  }
  const std::string config = R"({"d_model":8,"n_layers":5,"n_heads":2,"head_dim":4,"d_ff":12,)"
                             R"("vocab_size":5,"attn_period":0})";
  write_bytes(directory_ / kConfigName, bytes_of(config));
  EXPECT_NE(problem_in(directory_).find("attn_period"), std::string::npos);
}

// ollama/ollama#3120: a path outside ASCII cannot be opened.
TEST_F(HostileFiles, PathsOutsideAsciiLoad) {
  const std::filesystem::path folder = folder_.path() / "Zelda-\xC5\xBD\xE5\xB8\xB3";
  std::filesystem::create_directory(folder);
  std::filesystem::rename(directory_, folder / "tiny");
  std::filesystem::rename(spelw_, folder / "tiny.spelw");
  EXPECT_EQ(problem_in(folder / "tiny"), "");
  EXPECT_EQ(problem_in(folder / "tiny.spelw"), "");
  const std::string message = problem_in(folder / "missing");
  EXPECT_NE(message.find("Zelda-\xC5\xBD\xE5\xB8\xB3"), std::string::npos) << message;
}

// ggml-org/llama.cpp#18674: dimensions whose product wraps.
TEST_F(HostileFiles, DimensionsWhoseProductsWrapAreRefusedWithoutAllocating) {
  // 2^31 * 2^31 = 2^62, 2^32-1 squared is nearly 2^64; times four bytes both wrap.
  for (const std::uint32_t value : {1U << 31, 1U << 30, 0xFFFFFFFFU, (1U << 16) + 4}) {
    for (const std::size_t field : {0U, 4U, 5U}) {
      EXPECT_NE(with_field(field, value), "") << kFieldNames[field] << " " << value;
    }
  }
  // The largest shape the limits allow: its size is computed, compared and refused.
  std::vector<std::byte> bytes = spelw_bytes_;
  const std::uint32_t largest[] = {65536, 1024, 1024, 64, 65536, 1U << 20, 32, 4};
  std::memcpy(bytes.data() + 8, largest, sizeof(largest));
  const std::string message = error_of([&] { (void)parse_spelw(bytes, "f"); });
  EXPECT_NE(message.find("the header describes a file of"), std::string::npos) << message;
}

// ggml-org/ggml#709: counts and types outside their range.
TEST_F(HostileFiles, CountsOutOfRangeAreRefusedByFieldAndOffset) {
  for (std::size_t field = 0; field < kHeaderFields; ++field) {
    for (const std::uint32_t value : {0xFFFFFFFFU, 0x80000000U, 255U << 24}) {
      const std::string message = with_field(field, value);
      EXPECT_NE(message.find(kFieldNames[field]), std::string::npos)
          << kFieldNames[field] << ": " << message;
    }
  }
  for (const std::uint32_t value : {0U, 3U, 5U, 255U}) {
    EXPECT_NE(with_field(8, value).find("n_draft_layers at byte 40"), std::string::npos);
  }
  for (const std::uint32_t value : {4U, 7U, 255U}) {
    EXPECT_NE(with_field(13, value).find("flags at byte 60"), std::string::npos);
  }
}

// paiml/aprender#2011: a tensor without data is filled with zeros.
TEST_F(HostileFiles, ATensorWithoutDataIsRefused) {
  for (const char* file : {kTargetName, kDraftName}) {
    const std::vector<std::byte> good = read_bytes(directory_ / file);
    // The last tensor's data is gone.
    write_bytes(directory_ / file, std::span(good).first(good.size() - 20));
    EXPECT_NE(problem_in(directory_).find("cut short"), std::string::npos);
    write_bytes(directory_ / file, good);
  }
  std::vector<std::byte> bytes = spelw_bytes_;
  bytes.resize(bytes.size() - spelw_file_bytes(tiny_config(), true) / 2);
  EXPECT_NE(error_of([&] { (void)parse_spelw(bytes, "f"); }).find("cut short"), std::string::npos);
}

// ggml-org/llama.cpp#6774: a truncated, mapped file crashes later.
TEST_F(HostileFiles, FilesCutAtEveryPageAndByOneByteAreRefusedWithBothSizes) {
  std::vector<std::size_t> cuts = {spelw_bytes_.size() - 1};
  for (std::size_t cut = 0; cut < spelw_bytes_.size(); cut += 4096) {
    cuts.push_back(cut);
  }
  for (const std::size_t cut : cuts) {
    write_bytes(spelw_, std::span(spelw_bytes_).first(cut));
    const std::string message = problem_in(spelw_);
    EXPECT_NE(message.find("found " + std::to_string(cut)), std::string::npos) << message;
    EXPECT_NE(message.find(cut < 64 ? "at least 64" : std::to_string(spelw_bytes_.size())),
              std::string::npos)
        << message;
  }
}

// 1bit-MONSTER/1bit-MONSTER#1606: the converter accepts a truncated file.
TEST_F(HostileFiles, ConvertingATruncatedFileFailsAndLeavesNothing) {
  write_bytes(spelw_, std::span(spelw_bytes_).first(spelw_bytes_.size() - 1));
  std::ostringstream out;
  std::ostringstream err;
  const std::vector<std::string> args = {spelw_.string(), (folder_.path() / "out").string()};
  const std::size_t before = folder_.entries();
  EXPECT_NE(tools::convert_weights_main(args, {out, err}), 0);
  EXPECT_EQ(folder_.entries(), before);
  EXPECT_NE(err.str().find("cut short"), std::string::npos) << err.str();
}

// ServeurpersoCom/acestep.cpp#98: the number of layers indexes an array.
TEST_F(HostileFiles, LayerCountsPastTheLimitAreRefused) {
  for (const std::uint32_t layers : {1025U, 1U << 31}) {
    EXPECT_NE(with_field(1, layers).find("n_layers"), std::string::npos);
  }
  EXPECT_NE(with_field(1, 1024), "");
}

// Luce-Org/lucebox#438: a truncated draft file is found out by the first long request.
TEST_F(HostileFiles, ATruncatedDraftIsRefusedAtLoadByName) {
  const std::vector<std::byte> good = read_bytes(directory_ / kDraftName);
  write_bytes(directory_ / kDraftName, std::span(good).first(good.size() / 2));
  const std::string message = problem_in(directory_);
  EXPECT_NE(message.find((directory_ / kDraftName).string()), std::string::npos) << message;
}

TEST_F(HostileFiles, EveryTruncationOfEveryFileOfADirectoryIsRefused) {
  std::filesystem::remove(directory_ / kSumsName);
  const std::vector<std::byte> config = read_bytes(directory_ / kConfigName);
  const std::vector<std::byte> target = read_bytes(directory_ / kTargetName);
  const std::vector<std::byte> draft = read_bytes(directory_ / kDraftName);
  const std::vector<std::byte> golden = read_bytes(directory_ / kGoldenName);
  const ModelDirectoryBytes good = {config, target, draft, golden, std::nullopt, ""};
  ASSERT_EQ(error_of([&] { (void)parse_model_directory(good); }), "");
  const auto refused = [](const ModelDirectoryBytes& files) {
    return !error_of([&] { (void)parse_model_directory(files); }).empty();
  };
  for (std::size_t size = 0; size < target.size(); ++size) {
    ModelDirectoryBytes files = good;
    files.target = std::span(target).first(size);
    ASSERT_TRUE(refused(files)) << "target " << size;
  }
  for (std::size_t size = 0; size < draft.size(); ++size) {
    ModelDirectoryBytes files = good;
    files.draft = std::span(draft).first(size);
    ASSERT_TRUE(refused(files)) << "draft " << size;
  }
  for (std::size_t size = 0; size < golden.size(); ++size) {
    ModelDirectoryBytes files = good;
    files.golden = std::span(golden).first(size);
    ASSERT_TRUE(refused(files)) << "golden " << size;
  }
  for (std::size_t size = 0; size + 1 < config.size(); ++size) {  // The last byte is a newline.
    ModelDirectoryBytes files = good;
    files.config = std::span(config).first(size);
    ASSERT_TRUE(refused(files)) << "config " << size;
  }
}

/// Whether two sources of one shape hold the same values.
bool same_values(const ModelSource& a, const ModelSource& b) {
  const std::vector<TensorSpec> tensors = tensor_layout(a.config()).in_file_order();
  return std::ranges::all_of(tensors, [&](const TensorSpec& tensor) {
    return a.read_values(tensor) == b.read_values(tensor);
  });
}

TEST_F(HostileFiles, EveryFlippedBitOfAContainerHeaderIsRefusedOrChangesNoTensor) {
  ModelConfig shape = tiny_config();
  shape.n_layers = 1;
  shape.draft_layers = {0};
  const std::filesystem::path folder = folder_.path() / "one-layer";
  write_model(*random_source(shape, 7), std::nullopt, folder, ModelForm::kDirectory);
  const std::vector<std::byte> config = read_bytes(folder / kConfigName);
  const std::vector<std::byte> target = read_bytes(folder / kTargetName);
  const std::vector<std::byte> draft = read_bytes(folder / kDraftName);
  const ModelDirectoryBytes good = {config, target, draft, std::nullopt, std::nullopt, ""};
  const auto original = parse_model_directory(good);
  for (const bool flip_draft : {false, true}) {
    std::vector<std::byte> bytes = flip_draft ? draft : target;
    std::uint64_t header_size = 0;
    std::memcpy(&header_size, bytes.data(), sizeof(header_size));
    ModelDirectoryBytes files = good;
    (flip_draft ? files.draft : files.target) = bytes;
    for (std::size_t bit = 0; bit < 8 * (8 + header_size); ++bit) {
      const auto mask = static_cast<std::byte>(1U << (bit % 8));
      bytes[bit / 8] ^= mask;
      try {
        ASSERT_TRUE(same_values(*original, *parse_model_directory(files))) << "bit " << bit;
      } catch (const Error&) {
      }
      bytes[bit / 8] ^= mask;
    }
  }
}

/// One of the ways files go bad: bits flip, words turn extreme, pieces vanish or repeat.
void mutate(std::vector<std::byte>& bytes, TestRandom& random) {
  constexpr std::uint32_t kExtremes[] = {0, 1, 4, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF, 0x7F800000};
  const std::size_t count = 1 + random.below(4);
  for (std::size_t i = 0; i < count && bytes.size() > 8; ++i) {
    // Half of the damage goes to the front, where headers are.
    const std::size_t range =
        random.below(2) == 0 ? bytes.size() : std::min<std::size_t>(bytes.size(), 128);
    const std::size_t at = random.below(range - 4);
    switch (random.below(5)) {
      case 0:
        bytes[at] ^= static_cast<std::byte>(1U << random.below(8));
        break;
      case 1:
        bytes[at] = static_cast<std::byte>(random.below(256));
        break;
      case 2: {
        const std::uint32_t word = kExtremes[random.below(std::size(kExtremes))];
        std::memcpy(bytes.data() + at, &word, sizeof(word));
        break;
      }
      case 3:
        bytes.resize(at);
        break;
      default:
        bytes.insert(bytes.begin() + static_cast<std::ptrdiff_t>(at), bytes.begin(),
                     bytes.begin() + static_cast<std::ptrdiff_t>(1 + random.below(8)));
        break;
    }
  }
}

/// Everything a loader would do with an accepted source, so that a bad acceptance shows.
void use(const ModelSource& source) {
  EXPECT_NO_THROW(source.config().validate());
  EXPECT_NE(build_weights(source, WeightsDtype::kBf16), nullptr);
}

constexpr int kMutations = 50'000;

TEST_F(HostileFiles, FiftyThousandMutationsOfASpelwFileNeverCrash) {
  TestRandom random(1907);
  int accepted = 0;
  for (int i = 0; i < kMutations; ++i) {
    std::vector<std::byte> bytes = spelw_bytes_;
    mutate(bytes, random);
    try {
      use(*parse_spelw(bytes, "f"));
      ++accepted;
    } catch (const Error&) {
      continue;
    }
    // Only a file of exactly the right size may get through.
    ASSERT_EQ(bytes.size(), spelw_bytes_.size()) << "mutation " << i;
  }
  EXPECT_LT(accepted, kMutations);
}

TEST_F(HostileFiles, FiftyThousandMutationsOfADirectoryNeverCrash) {
  const std::vector<std::byte> good[] = {
      read_bytes(directory_ / kConfigName), read_bytes(directory_ / kTargetName),
      read_bytes(directory_ / kDraftName), read_bytes(directory_ / kGoldenName),
      read_bytes(directory_ / kSumsName)};
  TestRandom random(2048);
  int accepted = 0;
  for (int i = 0; i < kMutations; ++i) {
    std::vector<std::byte> files[] = {good[0], good[1], good[2], good[3], good[4]};
    const std::size_t which = random.below(std::size(files));
    mutate(files[which], random);
    // With the sums nearly everything is caught there; leave them out of most tries.
    std::optional<std::span<const std::byte>> sums;
    if (which == 4 || i % 8 == 0) {
      sums = files[4];
    }
    try {
      use(*parse_model_directory({files[0], files[1], files[2], files[3], sums, "m/"}));
      ++accepted;
    } catch (const Error& error) {
      ASSERT_NE(std::string(error.what()), "");
    }
  }
  EXPECT_GT(accepted, 0);
  EXPECT_LT(accepted, kMutations);
}

TEST_F(HostileFiles, SmallFilesThatDescribeHugeModelsCostNoMemory) {
  const auto peak_kib = [] {
    rusage usage{};
    getrusage(RUSAGE_SELF, &usage);
    return usage.ru_maxrss;
  };
  std::vector<std::byte> bytes = spelw_bytes_;
  const std::uint32_t largest[] = {65536, 1024, 1024, 64, 65536, 1U << 20, 1U << 20, 4};
  std::memcpy(bytes.data() + 8, largest, sizeof(largest));
  const long before = peak_kib();
  EXPECT_NE(error_of([&] { (void)parse_spelw(bytes, "f"); }), "");
  const std::string config =
      R"({"d_model":65536,"n_layers":1024,"n_heads":1024,"head_dim":64,"d_ff":65536,)"
      R"("vocab_size":1048576})";
  write_bytes(directory_ / kConfigName, bytes_of(config));
  EXPECT_NE(problem_in(directory_), "");
  // A header of the largest size allowed, all keys.
  std::string header = "{";
  while (header.size() < SafetensorsView::kHeaderBytesMax - 64) {
    header += "\"" + std::to_string(header.size()) + "\":0,";
  }
  const std::uint64_t size = header.size();
  std::string file(8, '\0');
  std::memcpy(file.data(), &size, 8);
  write_bytes(directory_ / kTargetName, bytes_of(file + header));
  EXPECT_NE(problem_in(directory_), "");
#ifdef __SANITIZE_THREAD__
  constexpr long kShadows = 5;  // Every byte is shadowed by four.
#else
  constexpr long kShadows = 1;
#endif
  constexpr long kAllowedKib =
      16 * 1024 + 3 * static_cast<long>(SafetensorsView::kHeaderBytesMax /
                                        1024);  // The test's own copies of that file, too.
  EXPECT_LE(peak_kib() - before, kShadows * kAllowedKib);
}

TEST_F(HostileFiles, ThingsThatAreNotFilesAreRefused) {
  std::filesystem::remove(directory_ / kDraftName);
  std::filesystem::create_directory(directory_ / kDraftName);
  EXPECT_NE(problem_in(directory_).find("regular file"), std::string::npos);
  EXPECT_NE(problem_in("/dev/null").find("regular file"), std::string::npos);
  EXPECT_NE(problem_in(folder_.path() / "nothing").find("no such file"), std::string::npos);
  write_bytes(spelw_, {});
  EXPECT_NE(problem_in(spelw_).find("found 0"), std::string::npos);
  write_bytes(spelw_, bytes_of(std::string(100, 'x')));
  EXPECT_NE(problem_in(spelw_).find("SPELW001"), std::string::npos);
}

}  // namespace
}  // namespace spel::engine
