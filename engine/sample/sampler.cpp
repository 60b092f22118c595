#include "engine/sample/sampler.h"

#include <utility>

#include "config/base/limits.h"

namespace spel::engine {

Sampler::Sampler(std::size_t vocab_size) : Sampler(std::make_shared<Chooser>(vocab_size)) {}

Sampler::Sampler(std::shared_ptr<Chooser> chooser) : chooser_(std::move(chooser)) { reset({}, {}); }

void Sampler::reset(const SamplingParams& params, std::span<const TokenId> prompt,
                    std::size_t min_tokens, std::span<const TokenId> ends, std::size_t output_max) {
  params_ = params;
  output_size_ = 0;
  min_tokens_ = min_tokens;
  edits_.reset(params, prompt, min_tokens > 0 ? ends : std::span<const TokenId>{},
               output_max + limits::kSpecKMax);
  thinking_.reset(params.thinking);
}

void Sampler::push(TokenId token) {
  edits_.push(token);
  thinking_.push(token, output_size_);
  ++output_size_;
}

void Sampler::pop(TokenId token) {
  --output_size_;
  thinking_.pop(output_size_);
  edits_.pop(token);
}

TokenId Sampler::choose(std::span<const float> logits, std::size_t position) {
  if (const auto token = forced()) {
    return *token;
  }
  return chooser_->choose(logits, edits_.scores(logits, output_size_ >= min_tokens_), params_,
                          position);
}

}  // namespace spel::engine
