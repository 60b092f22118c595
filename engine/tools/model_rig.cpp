#include "engine/tools/model_rig.h"

#include <algorithm>
#include <string>
#include <utility>

#include "config/base/shipped_model.h"
#include "engine/speculate/model_drafter.h"
#include "engine/tools/environment.h"

namespace spel::engine::tools {
namespace {

ModelOptions with_ternary_kernel(ModelOptions options) {
  options.ternary = ternary_from_environment();
  return options;
}

}  // namespace

std::optional<std::filesystem::path> find_model(const Options& options) {
  if (const std::optional<std::string> path = options.value("model")) {
    return *path;
  }
  if (const std::optional<std::filesystem::path> path = model_from_environment()) {
    return path;
  }
  return find_shipped_model();
}

std::shared_ptr<const Tokenizer> tokenizer_for(const ModelSpec& spec) {
  if (spec.vocab_size == kAsciiTokens) {
    return make_ascii_tokenizer(spec.end_tokens.empty() ? std::nullopt
                                                        : std::optional(spec.end_tokens.front()));
  }
  std::vector<std::string> tokens;
  tokens.reserve(spec.vocab_size);
  for (std::size_t i = 0; i < spec.vocab_size; ++i) {
    tokens.push_back("<" + std::to_string(i) + ">");
  }
  return make_list_tokenizer(std::move(tokens), std::nullopt);
}

ModelRig::ModelRig(std::shared_ptr<const ModelWeights> weights_in, const kernels::Kernels& kernels,
                   std::size_t target_threads, std::size_t draft_threads,
                   const ModelOptions& options)
    : weights(std::move(weights_in)), target_pool(target_threads), draft_pool(draft_threads) {
  target = make_target_model(weights, kernels, target_pool, options);
  if (weights->draft) {
    draft = make_draft_model(weights, kernels, draft_pool, with_ternary_kernel(options));
  }
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
      engine(config, std::move(models.target),
             make_model_drafter("ternary", std::move(models.draft)),
             tokenizer_for(models.weights->target.spec)) {}

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
