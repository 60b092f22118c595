#include "engine/schedule/admission.h"

#include <algorithm>
#include <span>
#include <string>

#include "config/base/error.h"

namespace spel::engine {
namespace {

void require(bool good, const std::string& what) {
  if (!good) {
    throw Error(ErrorCode::kInvalidArgument, what);
  }
}

void check_vocabulary(std::span<const TokenId> tokens, const CausalModel& target) {
  const std::size_t vocab = target.vocab_size();
  const bool known = std::all_of(tokens.begin(), tokens.end(), [&](TokenId token) {
    return token >= 0 && static_cast<std::size_t>(token) < vocab;
  });
  require(known, "a token id is outside the vocabulary of " + std::to_string(vocab));
}

}  // namespace

EngineConfig checked_config(const EngineConfig& config, const CausalModel& target,
                            const Drafter* drafter) {
  require(config.sequences >= 1 && config.prefill_chunk >= 1,
          "sequences and prefill_chunk must be at least 1");
  const std::size_t rows = config.batch_rows();
  require(rows <= target.max_batch_rows(),
          "a step takes up to sequences * (k_max + 1) + prefill_chunk = " + std::to_string(rows) +
              " rows; the target's passes hold " + std::to_string(target.max_batch_rows()));
  require(config.k_max + 1 <= target.max_checkpoints(),
          "k_max " + std::to_string(config.k_max) + ": the target keeps " +
              std::to_string(target.max_checkpoints()) + " checkpoints, a round needs k_max + 1");
  if (drafter != nullptr) {
    require(drafter->vocab_size() == target.vocab_size(),
            "the draft's vocabulary has " + std::to_string(drafter->vocab_size()) +
                " tokens, the target's " + std::to_string(target.vocab_size()));
    require(
        config.prefill_chunk + 1 <= drafter->rows_max() && config.sequences <= drafter->rows_max(),
        "the draft's passes hold " + std::to_string(drafter->rows_max()) +
            " rows; prefill_chunk + 1 and one for each sequence must fit");
  }
  return config;
}

void check_tokenizer(const Tokenizer& tokenizer, const CausalModel& target) {
  require(tokenizer.vocab_size() <= target.vocab_size(),
          "the tokenizer has " + std::to_string(tokenizer.vocab_size()) +
              " tokens, the model's vocabulary " + std::to_string(target.vocab_size()));
}

void check_request(const GenerationRequest& request, const TokenStream& stream,
                   const EngineConfig& config, const CausalModel& target) {
  require(stream.capacity() > config.k_max,
          "the stream holds " + std::to_string(stream.capacity()) +
              " events; a round emits up to k_max + 1 = " + std::to_string(config.k_max + 1));
  require(!request.prompt.empty(), "the prompt is empty");
  require(request.prompt.size() < target.max_seq(),
          "the prompt has " + std::to_string(request.prompt.size()) +
              " tokens; at most max_seq - 1 = " + std::to_string(target.max_seq() - 1) + " fit");
  check_vocabulary(request.prompt, target);
  check_vocabulary(request.stop_token_ids, target);
  require(request.min_tokens <= request.max_tokens,
          "min_tokens " + std::to_string(request.min_tokens) + " is more than max_tokens " +
              std::to_string(request.max_tokens));
  for (const auto& bias : request.sampling.logit_bias) {
    check_vocabulary({&bias.first, 1}, target);
  }
  if (const auto& thinking = request.sampling.thinking) {
    check_vocabulary(thinking->close, target);
    require(thinking->close.size() <= limits::kThinkingCloseMax &&
                std::find(thinking->close.begin(), thinking->close.end(), thinking->end) !=
                    thinking->close.end(),
            "what closes a thought must hold the token that ends it, and at most " +
                std::to_string(limits::kThinkingCloseMax) + " tokens");
  }
  require(std::none_of(request.stop.begin(), request.stop.end(),
                       [](const std::string& stop) { return stop.empty(); }),
          "a stop string is empty");
  require(request.logprobs.value_or(0) <= limits::kTopLogprobsMax,
          "logprobs " + std::to_string(request.logprobs.value_or(0)) + ": at most " +
              std::to_string(limits::kTopLogprobsMax) + " alternatives are reported");
}

void check_capture(const CaptureRequest& request, const CaptureShape& shape,
                   const CausalModel& target) {
  require(shape.channels != 0, "this model has no recurrent layers to capture");
  require(!request.tokens.empty() && request.tokens.size() <= target.max_seq(),
          "a capture reads 1 to max_seq = " + std::to_string(target.max_seq()) +
              " tokens; asked for " + std::to_string(request.tokens.size()));
  check_vocabulary(request.tokens, target);
}

}  // namespace spel::engine
