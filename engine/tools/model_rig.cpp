#include "engine/tools/model_rig.h"

#include <algorithm>
#include <cstdlib>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

#include "config/base/error.h"
#include "config/base/limits.h"
#include "config/base/shipped_model.h"

namespace spel::engine::tools {
namespace {

constexpr std::size_t kAsciiVocabulary = 128;

const char* environment(const char* name) {
  const char* text = std::getenv(name);
  return text != nullptr && *text != '\0' ? text : nullptr;
}

}  // namespace

std::optional<std::filesystem::path> find_model(const Options& options) {
  if (const std::optional<std::string> path = options.value("model")) {
    return *path;
  }
  for (const char* name : {"SPEL_MODEL", "SPEL_WEIGHTS"}) {
    if (const char* path = environment(name)) {
      return path;
    }
  }
  return find_shipped_model();
}

std::size_t draft_threads_from_environment(std::size_t fallback) {
  const char* text = environment("SPEL_DRAFT_THREADS");
  if (text == nullptr) {
    return fallback;
  }
  const std::uint64_t threads =
      parse_unsigned("SPEL_DRAFT_THREADS", text, limits::kDraftThreadsMax);
  if (threads == 0) {
    throw Error(ErrorCode::kInvalidArgument, "SPEL_DRAFT_THREADS is \"0\"; expected 1 to " +
                                                 std::to_string(limits::kDraftThreadsMax));
  }
  return threads;
}

const kernels::Kernels& kernels_from_environment() {
  const char* text = environment("SPEL_ISA");
  if (text == nullptr || std::string_view(text) == "auto") {
    return kernels::Kernels::select();
  }
  const std::optional<kernels::Isa> isa = kernels::parse_isa(text);
  if (!isa) {
    throw Error(ErrorCode::kInvalidArgument, "SPEL_ISA is \"" + std::string(text) +
                                                 "\"; expected auto, avx512, avx2, neon or scalar");
  }
  return kernels::Kernels::select(isa);
}

std::shared_ptr<const Tokenizer> tokenizer_for(const ModelConfig& config) {
  if (config.vocab_size == kAsciiVocabulary) {
    return make_ascii_tokenizer();
  }
  std::vector<std::string> tokens;
  tokens.reserve(config.vocab_size);
  for (std::uint32_t i = 0; i < config.vocab_size; ++i) {
    tokens.push_back("<" + std::to_string(i) + ">");
  }
  return make_list_tokenizer(std::move(tokens), std::nullopt);
}

ModelRig::ModelRig(std::shared_ptr<const ModelWeights> weights_in, const kernels::Kernels& kernels,
                   std::size_t target_threads, std::size_t draft_threads,
                   const ModelOptions& options)
    : weights(std::move(weights_in)), target_pool(target_threads), draft_pool(draft_threads) {
  target = make_target_model(weights, kernels, target_pool, options);
  draft = make_draft_model(weights, kernels, draft_pool, options);
}

namespace {

ModelOptions with_rows(ModelOptions options, std::size_t rows) {
  options.max_batch_rows = std::max(options.max_batch_rows, rows);
  return options;
}

}  // namespace

EngineRig::EngineRig(std::shared_ptr<const ModelWeights> weights, const kernels::Kernels& kernels,
                     std::size_t target_threads, std::size_t draft_threads,
                     const ModelOptions& options, const EngineConfig& config)
    : models(std::move(weights), kernels, target_threads, draft_threads,
             with_rows(options, config.batch_rows())),
      engine(config, std::move(models.target), std::move(models.draft),
             tokenizer_for(models.weights->config)) {}

std::vector<float> feed(CausalModel& model, SequenceState& state, std::span<const TokenId> tokens,
                        std::size_t size, bool checkpoints) {
  const std::size_t vocab = model.vocab_size();
  std::vector<float> logits(tokens.size() * vocab);
  for (std::size_t at = 0; at < tokens.size(); at += size) {
    const auto part = tokens.subspan(at, std::min(size, tokens.size() - at));
    const ForwardItem item{&state, part, checkpoints, LogitRows::kAll, &logits[at * vocab]};
    model.forward({&item, 1});
  }
  return logits;
}

TokenId greedy_choice(std::span<const float> logits) {
  return static_cast<TokenId>(std::max_element(logits.begin(), logits.end()) - logits.begin());
}

}  // namespace spel::engine::tools
