#include "engine/tools/bench/pass_timer.h"

#include <algorithm>

#include "engine/tools/model_rig.h"
#include "engine/tools/prompts.h"

namespace spel::engine::tools {

PassTimer::PassTimer(CausalModel& model, std::size_t context)
    : model_(model),
      limit_(model.max_seq() - model.max_checkpoints()),
      start_(model.make_state()),
      state_(model.make_state()),
      tokens_(random_prompt(model.max_checkpoints(), model.vocab_size(), 5)),
      logits_(model.max_checkpoints() * model.vocab_size()) {
  (void)feed(model, *start_, random_prompt(context, model.vocab_size(), 6), model.max_batch_rows());
  state_->copy_from(*start_);
}

void PassTimer::pass(std::size_t m) {
  const ForwardItem item{state_.get(), std::span(tokens_).first(m), true, LogitRows::kAll,
                         logits_.data()};
  model_.forward({&item, 1});
  // The largest round overwrites its own start: one of its tokens stays, and the place creeps on.
  state_->rollback(std::min(m, model_.max_checkpoints() - 1));
  if (state_->position() > limit_) {
    state_->copy_from(*start_);
  }
}

}  // namespace spel::engine::tools
