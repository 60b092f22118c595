#include "engine/schedule/step.h"

#include <algorithm>
#include <utility>

namespace spel::engine {

Stepper::Stepper(const EngineConfig& config, CausalModel& target, Drafter* drafter, Books& books,
                 Lifecycle& life)
    : config_(config),
      target_(target),
      drafter_(drafter),
      books_(books),
      life_(life),
      vocab_(target.vocab_size()),
      target_observer_(costs_.target, settling_),
      draft_observer_(costs_.draft, settling_),
      planner_(config.sequences, config.k_max),
      prompt_logits_(config.prefill_chunk * target.vocab_size()) {
  running_.reserve(config.sequences);
  prefilling_.reserve(config.sequences);
  items_.reserve(config.sequences);
  draft_items_.reserve(config.sequences);
  candidates_.reserve(config.sequences);
}

void Stepper::Observer::observe(const PassLoad& load, double seconds, bool settled) {
  const auto now = Clock::now();
  if (settled) {
    cost_.observe(load, seconds, now);
  }
  settling_.passed(load.rows, now);
}

bool Stepper::run(std::span<const std::unique_ptr<Sequence>> sequences) {
  step_ = {};
  plan(sequences);
  if (running_.empty()) {
    return false;
  }
  ++stats_.steps;
  const std::uint64_t before = stats_.generation_tokens;
  draft();
  forward();
  if (const std::uint64_t emitted = stats_.generation_tokens - before; emitted > 0) {
    books_.recent.add_step(emitted, seconds_between(step_.began, Clock::now()));
  }
  for (const auto& sequence : sequences) {
    if (sequence->stream) {
      sequence->stream->flush();
    }
  }
  // After everybody's tokens are on their way: the copies must not delay them.
  for (Sequence* sequence : running_) {
    life_.keep_prompt(*sequence);
  }
  for (const auto& sequence : sequences) {
    if (!sequence->active) {
      sequence->stream.reset();
    }
  }
  return true;
}

void Stepper::draft() {
  if (drafter_ == nullptr) {
    return;
  }
  draft_items_.clear();
  for (Sequence* sequence : running_) {
    if (sequence->proposed > 0) {
      draft_items_.push_back({sequence->draft_state.get(), sequence->draft_text(),
                              &sequence->sampler,
                              std::span(sequence->round).subspan(1, sequence->proposed)});
    }
  }
  if (draft_items_.empty()) {
    return;
  }
  const auto begin = Clock::now();
  drafter_->propose(draft_items_, draft_observer_);
  auto item = draft_items_.begin();
  for (Sequence* sequence : running_) {
    if (sequence->proposed > 0) {
      sequence->proposed = (item++)->made;
    }
  }
  stats_.draft_seconds += seconds_between(begin, Clock::now());
}

void Stepper::forward() {
  items_.clear();
  std::size_t prefill_rows = 0;
  for (Sequence* sequence : running_) {
    SequenceState* state = sequence->target_state.get();
    const std::size_t at = state->position();
    if (sequence->decoding) {
      const std::size_t rows = sequence->proposed + 1;
      items_.push_back({state, std::span<const TokenId>(sequence->round).first(rows), true,
                        LogitRows::kAll, sequence->target_logits.data()});
      step_.decode += PassLoad::of_rows(rows, at);
      step_.proposals = step_.proposals || sequence->proposed > 0;
      position_ = at;
      continue;
    }
    const std::size_t count = sequence->planned_prefill;
    const auto fed = std::span<const TokenId>(sequence->tokens).subspan(at, count);
    if (sequence->request.prompt_logprobs) {
      items_.push_back(
          {state, fed, false, LogitRows::kAll, &prompt_logits_[prefill_rows * vocab_]});
    } else if (at + count == sequence->prompt_size()) {
      items_.push_back({state, fed, false, LogitRows::kLast, sequence->target_logits.data()});
    } else {
      items_.push_back({state, fed, false, LogitRows::kNone, nullptr});
    }
    prefill_rows += count;
  }
  PassLoad load = step_.prefill;
  load += step_.decode;
  const auto begin = Clock::now();
  const bool settled = target_observer_.settled(load.rows);
  const PassClock clock;
  target_.forward(items_);
  commit();
  target_observer_.observe(load, clock.seconds(), settled);
  const double seconds = seconds_between(begin, Clock::now());
  const double share = step_.prefill.rows / load.rows;
  stats_.prefill_seconds += seconds * share;
  (step_.proposals ? stats_.verify_seconds : stats_.plain_seconds) += seconds * (1.0 - share);
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
    // The chunk's rows are the next step's; what is kept needs the last of them.
    std::copy(logits.begin(), logits.end(), sequence.target_logits.begin());
  }
  sequence.keep_prompt = life_.emit_first(sequence, logits);
  if (!sequence.active) {
    // That was all: the state is kept already and only gets its logits.
    life_.keep_prompt(sequence);
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
    sequence.sampler.logprobs({chunk_logits + i * vocab_, vocab_}, token, top, &entry.logprob,
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
    ended = life_.emit(sequence, token, agreed ? static_cast<std::int32_t>(emitted) : -1, logits);
    ++emitted;
    accepted += agreed ? 1 : 0;
  }
  record_round(sequence, accepted, agreed ? sequence.proposed - accepted : 0);

  const std::size_t kept = before + emitted;
  sequence.target_state->rollback(sequence.target_state->position() - kept);
  if (drafter_ != nullptr) {
    drafter_->keep(*sequence.draft_state, kept);
  }
  account(sequence, emitted);
  if (ended) {
    life_.finish(sequence);
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
    books_.recent.add_round(proposed, accepted);
    books_.lately.observe(proposed - discarded, accepted);
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

const EngineStats& Stepper::stats() {
  stats_.ar_seconds_per_token = costs_.ar_seconds(position_);
  stats_.c = costs_.c(position_);
  stats_.v_tokens = limits::kSpecKDefault + 1;
  stats_.v = costs_.v(limits::kSpecKDefault, position_);
  stats_.acceptance = books_.recent.acceptance();
  stats_.tokens_per_second = books_.recent.tokens_per_second();
  stats_.prefix_entries = life_.prefix_cache().used();
  stats_.state_bytes = life_.prefix_cache().bytes();
  return stats_;
}

}  // namespace spel::engine
