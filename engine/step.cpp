#include "engine/step.h"

#include <algorithm>

namespace spel::engine {

Stepper::Stepper(const EngineConfig& config, CausalModel& target, CausalModel* draft,
                 const Tokenizer& tokenizer)
    : config_(config),
      target_(target),
      draft_(draft),
      tokenizer_(tokenizer),
      vocab_(target.vocab_size()),
      prefix_cache_(target, config.prefix_cache_entries),
      planner_(config.sequences, config.k_max),
      prompt_logits_(config.prefill_chunk * target.vocab_size()) {
  running_.reserve(config.sequences);
  prefilling_.reserve(config.sequences);
  items_.reserve(config.sequences);
  candidates_.reserve(config.sequences);
}

bool Stepper::run(std::span<const std::unique_ptr<Sequence>> sequences) {
  step_ = {};
  plan(sequences);
  if (running_.empty()) {
    return false;
  }
  ++stats_.steps;
  emitted_in_step_ = 0;
  draft();
  forward();
  if (emitted_in_step_ > 0) {
    recent_.add_step(emitted_in_step_, seconds_between(step_.began, Clock::now()));
  }
  for (const auto& sequence : sequences) {
    if (sequence->stream) {
      sequence->stream->flush();
    }
  }
  // After everybody's tokens are on their way: the copies must not delay them.
  for (Sequence* sequence : running_) {
    keep_prompt(*sequence);
  }
  for (const auto& sequence : sequences) {
    if (!sequence->active) {
      sequence->stream.reset();
    }
  }
  return true;
}

void Stepper::draft() {
  if (draft_ == nullptr) {
    return;
  }
  const auto begin = Clock::now();
  for (std::size_t place = 0; place < config_.k_max; ++place) {
    const bool wanted =
        std::any_of(running_.begin(), running_.end(),
                    [place](const Sequence* sequence) { return sequence->proposed > place; });
    if (!wanted) {
      break;
    }
    propose(place);
  }
  for (Sequence* sequence : running_) {
    for (std::size_t place = sequence->proposed; place > 0; --place) {
      sequence->sampler.pop(sequence->round[place]);
    }
  }
  stats_.draft_seconds += seconds_between(begin, Clock::now());
}

// The proposals of all sequences for one place in the round. The first pass of each also feeds what
// its draft has missed: the end of the prompt, the last round's final token, or the tokens of plain
// rounds.
void Stepper::propose(std::size_t place) {
  items_.clear();
  PassLoad load;
  for (Sequence* sequence : running_) {
    if (sequence->proposed <= place) {
      continue;
    }
    const auto fed = place == 0
                         ? std::span<const TokenId>(sequence->tokens).subspan(sequence->draft_end())
                         : std::span<const TokenId>(sequence->round).subspan(place, 1);
    load += PassLoad::of_rows(fed.size(), sequence->draft_state->position());
    items_.push_back(
        {sequence->draft_state.get(), fed, false, LogitRows::kLast, sequence->draft_logits.data()});
  }
  const bool settled = settling_.settled(load.rows, Clock::now());
  const PassClock clock;
  draft_->forward(items_);
  for (Sequence* sequence : running_) {
    if (sequence->proposed <= place) {
      continue;
    }
    const TokenId token =
        sequence->sampler.choose(sequence->draft_logits, sequence->tokens.size() + place);
    if (token < 0) {
      sequence->proposed = place;  // A broken draft proposes nothing; the target goes on.
      continue;
    }
    sequence->round[place + 1] = token;
    sequence->sampler.push(token);
  }
  observe(costs_.draft, load, clock.seconds(), settled);
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
  const bool settled = settling_.settled(load.rows, begin);
  const PassClock clock;
  target_.forward(items_);
  commit();
  observe(costs_.target, load, clock.seconds(), settled);
  const double seconds = seconds_between(begin, Clock::now());
  const double share = step_.prefill.rows / load.rows;
  stats_.prefill_seconds += seconds * share;
  (step_.proposals ? stats_.verify_seconds : stats_.plain_seconds) += seconds * (1.0 - share);
}

void Stepper::observe(PassCost& cost, const PassLoad& load, double seconds, bool settled) {
  const auto now = Clock::now();
  if (settled) {
    cost.observe(load, seconds, now);
  }
  settling_.passed(load.rows, now);
}

const EngineStats& Stepper::stats() {
  stats_.ar_seconds_per_token = costs_.ar_seconds(position_);
  stats_.c = costs_.c(position_);
  stats_.v_tokens = limits::kSpecKDefault + 1;
  stats_.v = costs_.v(limits::kSpecKDefault, position_);
  stats_.acceptance = recent_.acceptance();
  stats_.tokens_per_second = recent_.tokens_per_second();
  stats_.prefix_entries = prefix_cache_.used();
  stats_.state_bytes = prefix_cache_.bytes();
  return stats_;
}

}  // namespace spel::engine
