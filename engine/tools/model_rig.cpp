#include "engine/tools/model_rig.h"

#include <algorithm>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

#include "config/base/error.h"
#include "config/base/shipped_model.h"
#include "engine/tools/environment.h"

namespace spel::engine::tools {
namespace {

ModelOptions with_ternary_kernel(ModelOptions options) {
  options.ternary = ternary_from_environment();
  return options;
}

ModelOptions with_rows(ModelOptions options, std::size_t rows) {
  options.max_batch_rows = std::max(options.max_batch_rows, rows);
  return options;
}

constexpr std::size_t kStreamEvents = 256;

constexpr std::string_view kGoldenText = "The key is 1907.";
static_assert(kGoldenText.size() == kGoldenTokens);

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

AssembledModel assemble_rig(std::shared_ptr<const ModelWeights> weights,
                            const kernels::Kernels& kernels, std::size_t target_threads,
                            std::size_t draft_threads, const ModelOptions& options) {
  std::shared_ptr<const Tokenizer> tokenizer = tokenizer_for(weights->target.spec);
  return assemble_model({std::move(weights), std::move(tokenizer), {}},
                        {target_threads, draft_threads, kernels, with_ternary_kernel(options)});
}

EngineRig::EngineRig(std::shared_ptr<const ModelWeights> weights, const kernels::Kernels& kernels,
                     std::size_t target_threads, std::size_t draft_threads,
                     const ModelOptions& options, const EngineConfig& config)
    : model(assemble_rig(std::move(weights), kernels, target_threads, draft_threads,
                         with_rows(options, config.batch_rows()))),
      engine(start_engine(config, model)) {}

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

struct PendingRun::Signal {
  std::mutex mutex;
  std::condition_variable changed;
  std::uint64_t count = 0;
};

PendingRun::PendingRun(Engine& engine, GenerationRequest request)
    : signal_(std::make_shared<Signal>()),
      stream_(std::make_shared<TokenStream>(kStreamEvents, [signal = signal_] {
        const std::lock_guard lock(signal->mutex);
        ++signal->count;
        signal->changed.notify_one();
      })) {
  if (engine.submit(std::move(request), stream_) != SubmitStatus::kAccepted) {
    throw Error(ErrorCode::kUnavailable, "the engine's queue is full");
  }
}

Generated PendingRun::wait(const OnToken& on_token) {
  Generated generated;
  while (true) {
    std::uint64_t seen = 0;
    {
      const std::lock_guard lock(signal_->mutex);
      seen = signal_->count;
    }
    std::optional<StreamEvent> event = stream_->try_pop();
    if (!event) {
      std::unique_lock lock(signal_->mutex);
      signal_->changed.wait(lock, [&] { return signal_->count != seen; });
      continue;
    }
    if (const auto* token = std::get_if<TokenEvent>(&*event)) {
      generated.tokens.push_back(token->token);
      if (on_token) {
        on_token(*token);
      }
    } else if (auto* finish = std::get_if<FinishEvent>(&*event)) {
      generated.finish = std::move(*finish);
      if (generated.finish.reason == FinishReason::kError) {
        throw Error(ErrorCode::kInternal, "the engine failed: " + generated.finish.error);
      }
      return generated;
    }
  }
}

Generated run_request(Engine& engine, GenerationRequest request, const OnToken& on_token) {
  return PendingRun(engine, std::move(request)).wait(on_token);
}

GoldenLogits run_golden(const std::shared_ptr<const ModelWeights>& weights,
                        std::span<const TokenId> tokens, const kernels::Kernels& kernels,
                        kernels::TernaryKernel ternary) {
  if (tokens.size() > weights->target.spec.max_seq) {
    throw Error(ErrorCode::kInvalidArgument,
                "the model's max_seq is " + std::to_string(weights->target.spec.max_seq) +
                    "; golden logits need " + std::to_string(tokens.size()) + " positions");
  }
  if (!weights->draft) {
    throw Error(ErrorCode::kInvalidArgument,
                "the model has no draft; golden logits are those of target and draft");
  }
  ModelOptions options;
  options.max_seq = tokens.size();
  options.k_max = 1;  // No round is rolled back here; the smallest ring will do.
  options.max_batch_rows = tokens.size();
  options.ternary = ternary;
  const AssembledModel model =
      assemble_model({weights, nullptr, {}}, {.kernels = kernels, .model = options});
  const auto logits = [&](CausalModel& run) {
    return feed(run, *run.make_state(), tokens, tokens.size());
  };
  GoldenLogits golden;
  golden.tokens.assign(tokens.begin(), tokens.end());
  golden.target_logits = logits(*model.target);
  golden.draft_logits = logits(*model.draft);
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
