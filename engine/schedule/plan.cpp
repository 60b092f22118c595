// The first part of a step: which tokens of which sequences it feeds.
#include <algorithm>

#include "engine/schedule/step.h"

namespace spel::engine {

void Stepper::plan(std::span<const std::unique_ptr<Sequence>> sequences) {
  running_.clear();
  candidates_.clear();
  for (const auto& sequence : sequences) {
    sequence->decoding = false;
    sequence->planned_prefill = 0;
    sequence->proposed = 0;
    sequence->keep_prompt = false;
    if (sequence->active && sequence->prefilled() &&
        sequence->stream->park_unless(config_.k_max + 1)) {
      sequence->decoding = true;
      offer(*sequence);
    }
  }
  plan_prefill(sequences);
  grant();
}

// Enters a decoding sequence as a candidate for proposals.
void Stepper::offer(Sequence& sequence) {
  sequence.round[0] = sequence.tokens.back();
  running_.push_back(&sequence);
  Candidate& candidate = candidates_.emplace_back();
  candidate.position = sequence.target_state->position();
  candidate.pace = sequence.pace.value();
  if (!sequence.governor) {
    return;
  }
  candidate.governor = sequence.governor.get();
  candidate.wish = sequence.governor->wish();
  // A round emits at most k + 1 tokens, and its tokens must have a position in both models.
  const DraftOutlook outlook = drafter_->outlook(*sequence.draft_state, sequence.draft_text());
  std::size_t& k = candidate.wish.k;
  k = std::min({k, sequence.left() - 1, target_.max_seq() - sequence.tokens.size(), outlook.most});
  candidate.backlog = outlook.backlog;
  candidate.rounds_left = static_cast<double>(sequence.left()) / static_cast<double>(k + 1);
}

void Stepper::grant() {
  step_.plain = plain_step(candidates_, step_.prefill, costs_.target);
  if (drafter_ == nullptr) {
    return;
  }
  planner_.plan(candidates_, step_.plain, costs_, step_.began);
  std::size_t draft_rows = 0;
  for (std::size_t i = 0; i < candidates_.size(); ++i) {
    const Candidate& candidate = candidates_[i];
    if (candidate.granted == 0 || draft_rows + candidate.backlog + 1 > drafter_->rows_max()) {
      continue;  // The draft's pass is full: it proposes in the next step.
    }
    draft_rows += candidate.backlog + 1;
    running_[i]->proposed = candidate.granted;
  }
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
    Sequence& sequence = *prefilling_[i];
    const std::size_t share = std::max<std::size_t>(1, budget / (prefilling_.size() - i));
    sequence.planned_prefill = std::min(left(sequence), share);
    budget -= sequence.planned_prefill;
    step_.prefill += PassLoad::of_rows(sequence.planned_prefill, sequence.target_state->position());
    running_.push_back(&sequence);
  }
}

}  // namespace spel::engine
