// The last part of a step: what the target's logits turn into.
#include <algorithm>
#include <new>
#include <utility>

#include "engine/step.h"

namespace spel::engine {

std::vector<TokenId> Stepper::end_tokens(const GenerationRequest& request) const {
  std::vector<TokenId> ends = request.stop_token_ids;
  if (!request.ignore_eos && tokenizer_.eos()) {
    ends.push_back(*tokenizer_.eos());
  }
  return ends;
}

void Stepper::start(Sequence& sequence, GenerationRequest request,
                    std::shared_ptr<TokenStream> stream, Clock::time_point submitted_at) {
  sequence.request = std::move(request);
  sequence.stream = std::move(stream);
  sequence.submitted_at = submitted_at;
  sequence.started_at = Clock::now();
  sequence.first_token_at = sequence.started_at;
  sequence.last_token_at = sequence.started_at;
  const GenerationRequest& r = sequence.request;
  sequence.tokens.assign(r.prompt.begin(), r.prompt.end());
  sequence.sampler.reset(r.sampling, r.prompt, r.min_tokens, end_tokens(r));
  sequence.stops.emplace(r.stop);
  sequence.max_output = std::min(r.max_tokens, target_.max_seq() - r.prompt.size());
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
  } else if (draft_ == nullptr) {
    stats.draft_reason = "no draft model";
  } else {
    SpeculationParams params = r.speculation;
    params.k = std::min(params.k, config_.k_max);
    stats.k = params.k;
    stats.draft_enabled = true;
    stats.accepted_by_position.resize(params.k);
    sequence.governor = make_governor(params, lately_);
  }

  const PrefixCache::Hit reused =
      r.prompt_logprobs ? PrefixCache::Hit{} : prefix_cache_.find(r.prompt);
  if (reused.state != nullptr) {
    sequence.target_state->copy_from(*reused.state);
    stats.cached_tokens = reused.state->position();
    stats_.cached_tokens += stats.cached_tokens;
  } else {
    sequence.target_state->reset();
  }
  if (sequence.draft_state) {
    sequence.draft_state->reset();
    sequence.draft_start = 0;
  }
  sequence.pace = {};
  sequence.stats = std::move(stats);
  sequence.active = true;
  if (!reused.logits.empty()) {
    (void)emit_first(sequence, reused.logits);
  }
}

// What follows the prompt: the first token, or nothing if none was asked for. False: the model gave
// no valid probabilities, and nothing of this prompt is worth keeping.
bool Stepper::emit_first(Sequence& sequence, std::span<const float> logits) {
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

void Stepper::finish_prefill_chunk(Sequence& sequence, const float* chunk_logits) {
  stats_.prompt_tokens += sequence.planned_prefill;
  if (sequence.request.prompt_logprobs) {
    record_prompt_logprobs(sequence, chunk_logits);
  }
  const std::size_t position = sequence.target_state->position();
  if (position < sequence.prompt_size()) {
    return;
  }
  std::span<const float> logits(sequence.target_logits.data(), vocab_);
  if (sequence.request.prompt_logprobs) {
    logits = {chunk_logits + (sequence.planned_prefill - 1) * vocab_, vocab_};
    sequence.stream->push(std::move(sequence.prompt_event));
  }
  if (sequence.request.prompt_logprobs) {
    // The chunk's rows are the next step's; what is kept needs the last of them.
    std::copy(logits.begin(), logits.end(), sequence.target_logits.begin());
  }
  sequence.keep_prompt = emit_first(sequence, logits);
  if (!sequence.active) {
    keep_prompt(sequence);  // That was all: the state is kept already and only gets its logits.
  }
}

void Stepper::keep_prompt(Sequence& sequence) {
  if (std::exchange(sequence.keep_prompt, false)) {
    prefix_cache_.store_copy(sequence.request.prompt, *sequence.target_state,
                             std::span(sequence.target_logits).first(vocab_));
  }
}

void Stepper::commit() {
  // Newcomers first: somebody waits for a first token longer than for a next one.
  const float* chunk_logits = prompt_logits_.data();
  for (Sequence* sequence : running_) {
    if (!sequence->decoding) {
      finish_prefill_chunk(*sequence, chunk_logits);
      chunk_logits += sequence->planned_prefill * vocab_;
    }
  }
  for (Sequence* sequence : running_) {
    if (sequence->decoding) {
      verify(*sequence);
    }
  }
}

void Stepper::record_prompt_logprobs(Sequence& sequence, const float* chunk_logits) {
  const std::size_t end = sequence.target_state->position();
  const std::size_t begin = end - sequence.planned_prefill;
  const std::size_t top = sequence.request.logprobs.value_or(0);
  PromptEvent& event = sequence.prompt_event;
  if (begin == 0) {
    event.tokens.reserve(sequence.prompt_size());
    event.tokens.push_back({sequence.request.prompt.front(), 0.0F});
    event.top_logprobs.emplace_back();
  }
  // Row i predicts the token after position begin + i.
  for (std::size_t i = 0; begin + i + 1 < sequence.prompt_size() && begin + i < end; ++i) {
    const TokenId token = sequence.request.prompt[begin + i + 1];
    TokenLogprob entry{token, 0.0F};
    event.top_logprobs.emplace_back();
    token_logprobs({chunk_logits + i * vocab_, vocab_}, token, top, &entry.logprob,
                   &event.top_logprobs.back());
    event.tokens.push_back(entry);
  }
}

// The longest prefix of proposals equal to the target's own choices becomes output, and so does the
// target's next choice, which is the new pending token.
void Stepper::verify(Sequence& sequence) {
  const std::size_t fed = sequence.proposed + 1;
  const std::size_t before = sequence.target_state->position() - fed;
  std::size_t emitted = 0;
  std::size_t accepted = 0;
  bool agreed = true;
  bool ended = false;
  while (agreed && !ended && emitted < fed) {
    const std::span<const float> logits(&sequence.target_logits[emitted * vocab_], vocab_);
    const TokenId token = sequence.sampler.choose(logits, sequence.tokens.size());
    agreed = emitted < sequence.proposed && token == sequence.round[emitted + 1];
    ended = emit(sequence, token, agreed ? static_cast<std::int32_t>(emitted) : -1, logits);
    ++emitted;
    accepted += agreed ? 1 : 0;
  }
  record_round(sequence, accepted, agreed ? sequence.proposed - accepted : 0);

  const std::size_t kept = before + emitted;
  sequence.target_state->rollback(sequence.target_state->position() - kept);
  if (sequence.draft_state && sequence.draft_end() > kept) {
    sequence.draft_state->rollback(sequence.draft_end() - kept);
  }
  account(sequence, emitted);
  if (ended) {
    finish(sequence);
  }
}

// What the step cost this sequence so far, and what its tokens would have cost without proposals:
// this step without them for the first, and a plain one for each further token.
void Stepper::account(Sequence& sequence, std::size_t emitted) {
  const double plain =
      step_.plain.seconds + static_cast<double>(emitted - 1) * step_.plain.decode_seconds;
  const double seconds = step_.clock.seconds();
  sequence.stats.step_seconds += seconds;
  sequence.stats.plain_seconds += plain;
  sequence.pace.add(plain, seconds);
}

// Appends one token to the output. Returns true, with sequence.ending filled in, if it is the last.
bool Stepper::emit(Sequence& sequence, TokenId token, std::int32_t draft_position,
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
  ++stats_.generation_tokens;
  ++emitted_in_step_;

  TokenEvent event;
  event.token = token;
  event.draft_position = draft_position;
  if (request.logprobs) {
    token_logprobs(logits, token, *request.logprobs, &event.logprob, &event.top_logprobs);
  }

  const std::string_view bytes = tokenizer_.bytes(token);
  const bool is_eos = !request.ignore_eos && tokenizer_.eos() == token;
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
    ended = sequence.emitted() == sequence.max_output;
  }
  sequence.output_bytes += bytes.size();
  sequence.stream->push(event);
  return ended;
}

std::optional<StopMatcher::Match> Stepper::find_stop(Sequence& sequence, std::string_view bytes) {
  if (sequence.emitted() <= sequence.request.min_tokens) {
    sequence.stops->pass(bytes);
    return std::nullopt;
  }
  return sequence.stops->feed(bytes);
}

void Stepper::record_round(Sequence& sequence, std::size_t accepted, std::size_t discarded) {
  GenerationStats& stats = sequence.stats;
  const std::size_t proposed = sequence.proposed;
  if (proposed == 0) {
    ++stats.ar_rounds;
    ++stats_.plain_rounds;
  } else {
    ++stats.rounds;
    stats.proposed += proposed;
    stats.accepted += accepted;
    stats.discarded += discarded;
    ++stats_.drafts;
    stats_.draft_tokens += proposed;
    stats_.accepted_tokens += accepted;
    stats_.discarded_tokens += discarded;
    for (std::size_t i = 0; i < accepted; ++i) {
      ++stats.accepted_by_position[i];
      ++stats_.accepted_by_position[i];
    }
    recent_.add_round(proposed, accepted);
    lately_.observe(proposed - discarded, accepted);
  }
  if (sequence.governor) {
    const std::size_t trips = sequence.governor->trips();
    const std::size_t resumes = sequence.governor->resumes();
    // What was never judged says nothing about the draft.
    sequence.governor->on_round(proposed - discarded, accepted);
    stats_.trips += sequence.governor->trips() - trips;
    stats_.resumes += sequence.governor->resumes() - resumes;
  }
}

void Stepper::cancel(Sequence& sequence, FinishReason reason) {
  sequence.ending.reason = reason;
  finish(sequence);
}

void Stepper::fail(Sequence& sequence, const std::exception& error) {
  FinishEvent& ending = sequence.ending;
  ending.reason = FinishReason::kError;
  ending.out_of_memory = dynamic_cast<const std::bad_alloc*>(&error) != nullptr;
  ending.error = failure_text(error);
  finish(sequence);
}

void Stepper::refuse(const GenerationRequest& request, TokenStream& stream, FinishReason reason,
                     Clock::time_point submitted_at) {
  ++stats_.requests_finished[static_cast<std::size_t>(reason)];
  FinishEvent event;
  event.reason = reason;
  event.stats.prompt_tokens = request.prompt.size();
  event.stats.queue_seconds = seconds_between(submitted_at, Clock::now());
  event.stats.draft_reason = "never started";
  stream.push(std::move(event));
  stream.set_on_credit(nullptr);
  stream.flush();
}

void Stepper::finish(Sequence& sequence) {
  GenerationStats& stats = sequence.stats;
  stats.prefill_seconds = seconds_between(sequence.started_at, sequence.first_token_at);
  stats.decode_seconds = seconds_between(sequence.first_token_at, sequence.last_token_at);
  // The middle of what was attended to.
  const std::size_t position = (sequence.prompt_size() + sequence.tokens.size()) / 2;
  stats.ar_seconds = costs_.ar_seconds(position);
  if (stats.ar_seconds == 0.0) {
    stats.plain_seconds = 0.0;
  }
  if (stats.draft_enabled) {
    stats.trips = sequence.governor->trips();
    stats.resumes = sequence.governor->resumes();
    stats.c = costs_.c(position);
    stats.v = costs_.v(stats.k, position);
  }

  const std::size_t fed = sequence.target_state->position();
  const bool reusable = sequence.ending.reason == FinishReason::kStop ||
                        sequence.ending.reason == FinishReason::kLength;
  if (reusable) {
    prefix_cache_.store_swap(std::span(sequence.tokens).first(fed), sequence.target_state);
  }

  // Nothing throws from here on: what has ended is counted, told and freed.
  ++stats_.requests_finished[static_cast<std::size_t>(sequence.ending.reason)];
  FinishEvent event = std::exchange(sequence.ending, {});
  event.stats = std::exchange(sequence.stats, {});
  sequence.stream->push(std::move(event));
  sequence.stream->set_on_credit(nullptr);
  sequence.governor.reset();
  sequence.active = false;
}

}  // namespace spel::engine
