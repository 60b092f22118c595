#include "engine/schedule/lifecycle.h"

#include <algorithm>
#include <utility>

namespace spel::engine {

Lifecycle::Lifecycle(const EngineConfig& config, const CausalModel& target, const Drafter* drafter,
                     const Tokenizer& tokenizer, Books& books)
    : config_(config),
      target_(target),
      drafter_(drafter),
      tokenizer_(tokenizer),
      books_(books),
      ends_(config.end_tokens),
      prefix_cache_(target, config.prefix_cache_entries) {
  if (tokenizer.eos()) {
    ends_.push_back(*tokenizer.eos());
  }
}

std::vector<TokenId> Lifecycle::end_tokens(const GenerationRequest& request) const {
  std::vector<TokenId> ends = request.stop_token_ids;
  if (!request.ignore_eos) {
    ends.insert(ends.end(), ends_.begin(), ends_.end());
  }
  return ends;
}

void Lifecycle::start(Sequence& sequence, GenerationRequest request,
                      std::shared_ptr<TokenStream> stream, Clock::time_point submitted_at) {
  sequence.request = std::move(request);
  sequence.stream = std::move(stream);
  sequence.submitted_at = submitted_at;
  sequence.started_at = Clock::now();
  sequence.first_token_at = sequence.started_at;
  sequence.last_token_at = sequence.started_at;
  const GenerationRequest& r = sequence.request;
  sequence.tokens.assign(r.prompt.begin(), r.prompt.end());
  sequence.max_output = std::min(r.max_tokens, target_.max_seq() - r.prompt.size());
  sequence.sampler.reset(r.sampling, r.prompt, r.min_tokens, end_tokens(r), sequence.max_output);
  sequence.stops.emplace(r.stop);
  sequence.output_bytes = 0;
  sequence.prompt_event = {};
  sequence.ending = {};

  GenerationStats stats;
  stats.prompt_tokens = r.prompt.size();
  stats.queue_seconds = seconds_between(submitted_at, sequence.started_at);
  stats.governor = r.speculation.governor;
  sequence.governor.reset();
  if (!r.speculation.enabled || r.speculation.k == 0) {
    stats.draft_reason = "requested off";
  } else if (drafter_ == nullptr) {
    stats.draft_reason = "no draft model";
  } else {
    SpeculationParams params = r.speculation;
    params.k = std::min(params.k, config_.k_max);
    stats.k = params.k;
    stats.draft_enabled = true;
    stats.accepted_by_position.resize(params.k);
    sequence.governor = make_governor(params, books_.lately);
  }

  const PrefixCache::Hit reused =
      r.prompt_logprobs ? PrefixCache::Hit{} : prefix_cache_.find(r.prompt);
  if (reused.state != nullptr) {
    sequence.target_state->copy_from(*reused.state);
    stats.cached_tokens = reused.state->position();
    books_.stats.cached_tokens += stats.cached_tokens;
  } else {
    sequence.target_state->reset();
  }
  if (sequence.draft_state) {
    sequence.draft_state->reset();
  }
  sequence.pace = {};
  sequence.stats = std::move(stats);
  sequence.active = true;
  if (!reused.logits.empty()) {
    (void)emit_first(sequence, reused.logits);
  }
}

bool Lifecycle::emit_first(Sequence& sequence, std::span<const float> logits) {
  if (sequence.max_output == 0) {
    sequence.first_token_at = sequence.last_token_at = Clock::now();
    finish(sequence);
    return true;
  }
  const TokenId token = sequence.sampler.choose(logits, sequence.prompt_size());
  if (emit(sequence, token, -1, logits)) {
    finish(sequence);
  } else {
    sequence.stream->flush();
  }
  return token >= 0;
}

void Lifecycle::keep_prompt(Sequence& sequence) {
  if (std::exchange(sequence.keep_prompt, false)) {
    prefix_cache_.store_copy(sequence.request.prompt, *sequence.target_state,
                             std::span(sequence.target_logits).first(target_.vocab_size()));
  }
}

bool Lifecycle::emit(Sequence& sequence, TokenId token, std::int32_t draft_position,
                     std::span<const float> logits) {
  FinishEvent& ending = sequence.ending;
  if (token < 0) {
    ending.reason = FinishReason::kError;
    ending.error = "the model produced no valid probabilities";
    return true;
  }
  const GenerationRequest& request = sequence.request;
  sequence.last_token_at = Clock::now();
  if (!sequence.prefilled()) {
    sequence.first_token_at = sequence.last_token_at;
  }
  sequence.tokens.push_back(token);
  sequence.sampler.push(token);
  ++sequence.stats.completion_tokens;
  ++books_.stats.generation_tokens;

  TokenEvent event;
  event.token = token;
  event.draft_position = draft_position;
  if (request.logprobs) {
    sequence.sampler.logprobs(logits, token, *request.logprobs, &event.logprob,
                              &event.top_logprobs);
  }

  const std::string_view bytes = tokenizer_.bytes(token);
  const bool is_eos = !request.ignore_eos && std::ranges::find(ends_, token) != ends_.end();
  const bool is_stop_token = std::find(request.stop_token_ids.begin(), request.stop_token_ids.end(),
                                       token) != request.stop_token_ids.end();
  bool ended = true;
  if (is_eos || is_stop_token) {
    // Counted as generated, not shown: its bytes stay behind the end of the text.
    ending.reason = FinishReason::kStop;
    if (!is_eos) {
      ending.stop_token = token;
    }
    ending.text_bytes = sequence.stops->total_bytes();
    event.held_bytes = sequence.stops->held_bytes() + bytes.size();
  } else if (const auto match = find_stop(sequence, bytes)) {
    ending.reason = FinishReason::kStop;
    ending.stop_sequence = request.stop[match->stop];
    ending.text_bytes = match->text_bytes;
    event.held_bytes = sequence.output_bytes + bytes.size() - match->text_bytes;
  } else {
    ending.text_bytes = sequence.stops->total_bytes();
    event.held_bytes = sequence.stops->held_bytes();
    ending.reason = FinishReason::kLength;
    ended = sequence.left() == 0;
  }
  sequence.output_bytes += bytes.size();
  sequence.stream->push(event);
  return ended;
}

std::optional<StopMatcher::Match> Lifecycle::find_stop(Sequence& sequence, std::string_view bytes) {
  if (sequence.emitted() <= sequence.request.min_tokens) {
    sequence.stops->pass(bytes);
    return std::nullopt;
  }
  return sequence.stops->feed(bytes);
}

void Lifecycle::cancel(Sequence& sequence, FinishReason reason) {
  sequence.ending.reason = reason;
  finish(sequence);
}

void Lifecycle::fail(Sequence& sequence, const std::exception& error) {
  FinishEvent& ending = sequence.ending;
  ending.reason = FinishReason::kError;
  Failure failure = failure_of(error);
  ending.out_of_memory = failure.out_of_memory;
  ending.error = std::move(failure.text);
  finish(sequence);
}

void Lifecycle::refuse(const GenerationRequest& request, TokenStream& stream, FinishReason reason,
                       Clock::time_point submitted_at) {
  ++books_.stats.requests_finished[static_cast<std::size_t>(reason)];
  FinishEvent event;
  event.reason = reason;
  event.stats.prompt_tokens = request.prompt.size();
  event.stats.queue_seconds = seconds_between(submitted_at, Clock::now());
  event.stats.draft_reason = "never started";
  stream.push(std::move(event));
  stream.set_on_credit(nullptr);
  stream.flush();
}

void Lifecycle::finish(Sequence& sequence) {
  GenerationStats& stats = sequence.stats;
  stats.prefill_seconds = seconds_between(sequence.started_at, sequence.first_token_at);
  stats.decode_seconds = seconds_between(sequence.first_token_at, sequence.last_token_at);
  // The middle of what was attended to.
  const std::size_t position = (sequence.prompt_size() + sequence.tokens.size()) / 2;
  stats.ar_seconds = books_.costs.ar_seconds(position);
  if (stats.ar_seconds == 0.0) {
    stats.plain_seconds = 0.0;
  }
  if (stats.draft_enabled) {
    stats.trips = sequence.governor->trips();
    stats.resumes = sequence.governor->resumes();
    stats.c = books_.costs.c(position);
    stats.v = books_.costs.v(stats.k, position);
  }

  const std::size_t fed = sequence.target_state->position();
  const bool reusable = sequence.ending.reason == FinishReason::kStop ||
                        sequence.ending.reason == FinishReason::kLength;
  if (reusable) {
    prefix_cache_.store_swap(std::span(sequence.tokens).first(fed), sequence.target_state);
  }

  // Nothing throws from here on: what has ended is counted, told and freed.
  ++books_.stats.requests_finished[static_cast<std::size_t>(sequence.ending.reason)];
  FinishEvent event = std::exchange(sequence.ending, {});
  event.stats = std::exchange(sequence.stats, {});
  sequence.stream->push(std::move(event));
  sequence.stream->set_on_credit(nullptr);
  sequence.governor.reset();
  sequence.active = false;
}

}  // namespace spel::engine
