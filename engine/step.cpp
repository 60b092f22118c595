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
      prompt_logits_(config.prefill_chunk * target.vocab_size()) {
  running_.reserve(config.sequences);
  lagging_.reserve(config.sequences);
  prefilling_.reserve(config.sequences);
  items_.reserve(config.sequences);
}

void Stepper::calibrate(Sequence& scratch) {
  // Interleaved, so that a neighbour's burst does not fall on one row count alone.
  constexpr std::size_t kRuns = 4;
  constexpr std::size_t kRowsMax = 65;
  const std::size_t rows_max = std::min({kRowsMax, target_.max_batch_rows(), target_.max_seq()});
  const std::vector<TokenId> tokens(rows_max, 0);
  const auto measure = [&](CausalModel& model, SequenceState& state, std::size_t rows,
                           float* logits) {
    state.reset();
    const bool round = rows <= config_.k_max + 1;
    const ForwardItem item{&state, std::span(tokens).first(rows), round, LogitRows::kLast, logits};
    const auto begin = Clock::now();
    model.forward({&item, 1});
    const double seconds = seconds_between(begin, Clock::now());
    state.reset();
    return seconds;
  };
  // The first passes also touch the weights' pages: not a measurement.
  (void)measure(target_, *scratch.target_state, 1, scratch.target_logits.data());
  if (draft_ != nullptr) {
    (void)measure(*draft_, *scratch.draft_state, 1, scratch.draft_logits.data());
  }
  for (std::size_t run = 0; run < kRuns; ++run) {
    for (const std::size_t rows : RowCost::kRows) {
      if (rows <= rows_max) {
        costs_.target.calibrate(
            rows, measure(target_, *scratch.target_state, rows, scratch.target_logits.data()));
      }
    }
    if (draft_ != nullptr) {
      for (const std::size_t rows : {1U, 2U}) {
        costs_.draft.calibrate(
            rows, measure(*draft_, *scratch.draft_state, rows, scratch.draft_logits.data()));
      }
    }
  }
}

bool Stepper::run(std::span<const std::unique_ptr<Sequence>> sequences) {
  plan(sequences);
  if (running_.empty() && lagging_.empty()) {
    return false;
  }
  ++stats_.steps;
  emitted_in_step_ = 0;
  const auto begin = Clock::now();
  draft();
  if (!running_.empty()) {
    forward();
  }
  const auto end = Clock::now();
  if (emitted_in_step_ > 0) {
    recent_.add_step(emitted_in_step_, seconds_between(begin, end));
  }
  for (const auto& sequence : sequences) {
    if (sequence->stream) {
      sequence->stream->flush();
      if (!sequence->active) {
        sequence->stream.reset();
      }
    }
  }
  return true;
}

void Stepper::plan(std::span<const std::unique_ptr<Sequence>> sequences) {
  running_.clear();
  lagging_.clear();
  draft_rows_ = 0;
  std::size_t decoding = 0;
  for (const auto& sequence : sequences) {
    sequence->decoding = false;
    sequence->planned_prefill = 0;
    sequence->proposed = 0;
    if (sequence->active && sequence->prefilled()) {
      sequence->decoding = sequence->stream->park_unless(config_.k_max + 1);
      decoding += sequence->decoding ? 1 : 0;
    }
  }
  for (const auto& sequence : sequences) {
    if (sequence->decoding) {
      plan_round(*sequence, decoding);
      running_.push_back(sequence.get());
    }
  }
  plan_prefill(sequences);
}

void Stepper::plan_round(Sequence& sequence, std::size_t decoding) {
  sequence.round[0] = sequence.tokens.back();
  if (!sequence.governor) {
    return;
  }
  std::size_t k = sequence.governor->choose_k({&costs_, decoding});
  // A round emits at most k + 1 tokens, and its tokens must have a position.
  k = std::min(k, sequence.max_output - sequence.emitted() - 1);
  k = std::min(k, target_.max_seq() - sequence.tokens.size());
  const std::size_t draft_end = sequence.tokens.size() + k;
  if (k == 0 || draft_end > draft_->max_seq()) {
    return;
  }
  // A draft far behind (a fresh prompt, a long plain stretch) catches up over several steps.
  const std::size_t lag = sequence.tokens.size() - sequence.draft_state->position();
  if (lag > config_.prefill_chunk + 1 || draft_rows_ + lag > draft_->max_batch_rows()) {
    if (lag > 1) {
      lagging_.push_back(&sequence);
    }
    return;
  }
  draft_rows_ += lag;
  sequence.proposed = k;
}

// Divides the chunk over the prompts being prefilled, the shortest first, so that a newcomer never
// waits behind a long prompt.
void Stepper::plan_prefill(std::span<const std::unique_ptr<Sequence>> sequences) {
  const auto left = [](const Sequence& sequence) {
    return sequence.prompt_size() - sequence.target_state->position();
  };
  prefilling_.clear();
  for (const auto& sequence : sequences) {
    if (sequence->active && !sequence->prefilled()) {
      prefilling_.push_back(sequence.get());
    }
  }
  std::sort(prefilling_.begin(), prefilling_.end(), [&](const Sequence* a, const Sequence* b) {
    return left(*a) != left(*b) ? left(*a) < left(*b) : a->started_at < b->started_at;
  });
  std::size_t budget = config_.prefill_chunk;
  for (std::size_t i = 0; i < prefilling_.size() && budget > 0; ++i) {
    const std::size_t share = std::max<std::size_t>(1, budget / (prefilling_.size() - i));
    prefilling_[i]->planned_prefill = std::min(left(*prefilling_[i]), share);
    budget -= prefilling_[i]->planned_prefill;
    running_.push_back(prefilling_[i]);
    // The draft reads a long prompt along, a chunk behind: the last chunk waits until the first
    // token is out.
    const Sequence& sequence = *prefilling_[i];
    if (sequence.governor && sequence.draft_state->position() < sequence.target_state->position()) {
      lagging_.push_back(prefilling_[i]);
    }
  }
}

void Stepper::draft() {
  if (draft_ == nullptr) {
    return;
  }
  const auto begin = Clock::now();
  catch_up_draft();
  propose();
  stats_.draft_seconds += seconds_between(begin, Clock::now());
}

void Stepper::catch_up_draft() {
  if (lagging_.empty()) {
    return;
  }
  items_.clear();
  const std::size_t share = std::max<std::size_t>(1, config_.prefill_chunk / lagging_.size());
  for (Sequence* sequence : lagging_) {
    const std::size_t at = sequence->draft_state->position();
    const std::size_t count = std::min(share, sequence->target_state->position() - at);
    items_.push_back({sequence->draft_state.get(), std::span(sequence->tokens).subspan(at, count),
                      false, LogitRows::kNone, nullptr});
  }
  draft_->forward(items_);
}

// Proposals of all sequences, one place in the round at a time. The first pass of each also feeds
// what its draft has missed: the last round's final token, or the tokens of plain rounds.
void Stepper::propose() {
  std::size_t longest = 0;
  for (const Sequence* sequence : running_) {
    longest = std::max(longest, sequence->proposed);
  }
  for (std::size_t place = 0; place < longest; ++place) {
    items_.clear();
    std::size_t rows = 0;
    for (Sequence* sequence : running_) {
      if (sequence->proposed <= place) {
        continue;
      }
      const auto fed = place == 0 ? std::span<const TokenId>(sequence->tokens)
                                        .subspan(sequence->draft_state->position())
                                  : std::span<const TokenId>(sequence->round).subspan(place, 1);
      items_.push_back({sequence->draft_state.get(), fed, false, LogitRows::kLast,
                        sequence->draft_logits.data()});
      rows += fed.size();
    }
    if (items_.empty()) {
      break;
    }
    const auto begin = Clock::now();
    draft_->forward(items_);
    costs_.draft.observe(rows, seconds_between(begin, Clock::now()));
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
  }
  for (Sequence* sequence : running_) {
    for (std::size_t place = sequence->proposed; place > 0; --place) {
      sequence->sampler.pop(sequence->round[place]);
    }
  }
}

void Stepper::forward() {
  items_.clear();
  std::size_t decode_rows = 0;
  std::size_t prefill_rows = 0;
  bool proposals = false;
  for (Sequence* sequence : running_) {
    SequenceState* state = sequence->target_state.get();
    if (sequence->decoding) {
      const std::size_t rows = sequence->proposed + 1;
      items_.push_back({state, std::span<const TokenId>(sequence->round).first(rows), true,
                        LogitRows::kAll, sequence->target_logits.data()});
      decode_rows += rows;
      proposals = proposals || sequence->proposed > 0;
      continue;
    }
    const std::size_t at = state->position();
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
  const auto begin = Clock::now();
  target_.forward(items_);
  const double seconds = seconds_between(begin, Clock::now());
  if (prefill_rows == 0) {
    costs_.target.observe(decode_rows, seconds);
  }
  const double share =
      static_cast<double>(prefill_rows) / static_cast<double>(prefill_rows + decode_rows);
  stats_.prefill_seconds += seconds * share;
  (proposals ? stats_.verify_seconds : stats_.plain_seconds) += seconds * (1.0 - share);

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

const EngineStats& Stepper::stats() {
  stats_.ar_seconds_per_token = costs_.ar_seconds();
  stats_.c = costs_.c();
  stats_.v_tokens = limits::kSpecKDefault + 1;
  stats_.v = costs_.v(limits::kSpecKDefault);
  stats_.acceptance = recent_.acceptance();
  stats_.tokens_per_second = recent_.tokens_per_second();
  stats_.prefix_entries = prefix_cache_.used();
  stats_.state_bytes = prefix_cache_.bytes();
  return stats_;
}

}  // namespace spel::engine
