// [7] weights through a file.
#include <cstdlib>
#include <filesystem>
#include <sstream>
#include <system_error>
#include <vector>

#include "config/base/error.h"
#include "engine/document/golden.h"
#include "engine/document/random_source.h"
#include "engine/document/spelw.h"
#include "engine/tools/model_rig.h"
#include "engine/tools/selftest/suites.h"

namespace spel::engine::tools {
namespace {

/// A folder of its own, removed at the end.
class ScratchFolder {
 public:
  ScratchFolder() {
    std::string pattern =
        (std::filesystem::temp_directory_path() / "spel-selftest-XXXXXX").string();
    if (::mkdtemp(pattern.data()) == nullptr) {
      throw Error(ErrorCode::kIo, "cannot create " + pattern);
    }
    path_ = pattern;
  }
  ~ScratchFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;

  [[nodiscard]] const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

std::size_t argmax_agreement(std::span<const float> found, std::span<const float> expected,
                             std::size_t vocab) {
  std::size_t agrees = 0;
  for (std::size_t at = 0; at < expected.size(); at += vocab) {
    agrees += greedy_choice(found.subspan(at, vocab)) == greedy_choice(expected.subspan(at, vocab))
                  ? 1
                  : 0;
  }
  return agrees;
}

}  // namespace

void check_round_trip(const SuiteContext& context, Checks& checks) {
  constexpr std::uint64_t kSeed = 7;
  // The form holds only the default switches, which every random shape has.
  const ModelConfig shape = odd_shape();
  const std::unique_ptr<ModelSource> source = random_source(shape, kSeed);
  const auto tokens = golden_tokens(shape);
  const GoldenLogits before =
      run_golden(build_weights(*source, WeightsDtype::kF32), tokens, context.kernels);
  const ScratchFolder folder;
  const std::filesystem::path path = folder.path() / "round-trip.spelw";
  write_spelw(*source, before, path);
  const auto loaded = load_model(path, WeightsDtype::kF32);
  const GoldenLogits after = run_golden(loaded, tokens, context.kernels);

  const auto compare = [&](const char* name, const std::vector<float>& found,
                           const std::vector<float>& expected) {
    const double error = checks.max_abs(found, expected);
    const std::size_t agrees = argmax_agreement(found, expected, shape.vocab_size);
    checks.require(error == 0.0 && agrees == kGoldenTokens,
                   std::string(name) + " computes other logits after the round trip");
    std::ostringstream text;
    text << name << " max_abs=" << error << ", " << agrees << "/" << kGoldenTokens;
    checks.note(text.str());
  };
  compare("target", after.target_logits, before.target_logits);
  compare("draft", after.draft_logits, before.draft_logits);
  checks.require(loaded->golden.has_value() && loaded->golden->tokens == before.tokens,
                 "the footer's tokens are not those written");
}

}  // namespace spel::engine::tools
