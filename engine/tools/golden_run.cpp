#include "engine/tools/golden_run.h"

#include <string_view>

#include "config/base/error.h"
#include "engine/document/golden.h"
#include "engine/model/transformer.h"
#include "kernels/thread_pool.h"

namespace spel::engine::tools {
namespace {

constexpr std::string_view kGoldenText = "The key is 1907.";
static_assert(kGoldenText.size() == kGoldenTokens);

std::vector<float> run(CausalModel& model, std::span<const TokenId> tokens) {
  std::vector<float> logits(tokens.size() * model.vocab_size());
  const std::unique_ptr<SequenceState> state = model.make_state();
  ForwardItem item;
  item.state = state.get();
  item.tokens = tokens;
  item.logit_rows = LogitRows::kAll;
  item.logits = logits.data();
  model.forward(std::span(&item, 1));
  return logits;
}

}  // namespace

GoldenLogits run_golden(const std::shared_ptr<const ModelWeights>& weights,
                        std::span<const TokenId> tokens, const kernels::Kernels& kernels,
                        kernels::TernaryKernel ternary) {
  if (tokens.size() > weights->target.spec.max_seq) {
    throw Error(ErrorCode::kInvalidArgument,
                "the model's max_seq is " + std::to_string(weights->target.spec.max_seq) +
                    "; golden logits need " + std::to_string(tokens.size()) + " positions");
  }
  ModelOptions options;
  options.max_seq = tokens.size();
  options.k_max = 1;  // No round is rolled back here; the smallest ring will do.
  options.max_batch_rows = tokens.size();
  options.ternary = ternary;
  kernels::ThreadPool pool(1);
  GoldenLogits golden;
  golden.tokens.assign(tokens.begin(), tokens.end());
  golden.target_logits = run(*make_target_model(weights, kernels, pool, options), tokens);
  golden.draft_logits = run(*make_draft_model(weights, kernels, pool, options), tokens);
  return golden;
}

std::vector<TokenId> golden_tokens(const ModelConfig& config) {
  std::vector<TokenId> tokens;
  for (const char c : kGoldenText) {
    tokens.push_back(static_cast<TokenId>(static_cast<std::uint32_t>(c) % config.vocab_size));
  }
  return tokens;
}

}  // namespace spel::engine::tools
