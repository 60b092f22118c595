// One step of the continuous batch: plan, draft, forward, verify, emit.
#pragma once

#include <cstddef>
#include <exception>
#include <memory>
#include <span>
#include <vector>

#include "engine/engine.h"
#include "engine/prefix_cache.h"
#include "engine/recent_rounds.h"
#include "engine/sequence.h"
#include "engine/speculate/cost_model.h"
#include "engine/tokenizer.h"

namespace spel::engine {

/// Runs the models over the sequences it is given. Engine thread only; allocates nothing per token
/// unless logprobs are asked for.
class Stepper {
 public:
  Stepper(const EngineConfig& config, CausalModel& target, CausalModel* draft,
          const Tokenizer& tokenizer);

  /// Measures passes of a few sizes on `scratch`, so that the first receipts have a unit.
  void calibrate(Sequence& scratch);

  /// Advances every active sequence that is not parked. Sequences that end have their FinishEvent
  /// pushed and become inactive. Returns false if there was nothing to do.
  bool run(std::span<const std::unique_ptr<Sequence>> sequences);

  /// Puts a request into a free place. A prompt that was read before has its first token at once,
  /// and may have ended with it.
  void start(Sequence& sequence, GenerationRequest request, std::shared_ptr<TokenStream> stream,
             Clock::time_point submitted_at);
  /// Ends a sequence from outside: receipt, FinishEvent, place freed.
  void cancel(Sequence& sequence, FinishReason reason);
  /// Ends a request that never left the queue.
  void refuse(const GenerationRequest& request, TokenStream& stream, FinishReason reason,
              Clock::time_point submitted_at);
  /// Ends what `error` has stopped, in whatever state it is. The place is free afterwards; its
  /// stream is told and not yet flushed.
  void fail(Sequence& sequence, const std::exception& error);

  /// Counters and gauges this class owns; the caller adds the queue's.
  [[nodiscard]] const EngineStats& stats();
  [[nodiscard]] const CostModel& costs() const noexcept { return costs_; }

 private:
  void plan(std::span<const std::unique_ptr<Sequence>> sequences);
  void plan_round(Sequence& sequence, std::size_t decoding);
  void plan_prefill(std::span<const std::unique_ptr<Sequence>> sequences);
  void draft();
  void catch_up_draft();
  void propose();
  void forward();
  void verify(Sequence& sequence);
  bool emit_first(Sequence& sequence, std::span<const float> logits);
  void finish_prefill_chunk(Sequence& sequence, const float* chunk_logits);
  void record_prompt_logprobs(Sequence& sequence, const float* chunk_logits);
  bool emit(Sequence& sequence, TokenId token, std::int32_t draft_position,
            std::span<const float> logits);
  void finish(Sequence& sequence);
  void record_round(Sequence& sequence, std::size_t accepted, std::size_t discarded);

  EngineConfig config_;
  CausalModel& target_;
  CausalModel* draft_;  ///< May be null.
  const Tokenizer& tokenizer_;
  std::size_t vocab_;
  PrefixCache prefix_cache_;
  CostModel costs_;
  RecentRounds recent_;
  EngineStats stats_;
  std::vector<Sequence*> running_;  ///< Planned for this step.
  std::vector<Sequence*> lagging_;  ///< Whose draft catches up in this step.
  std::vector<Sequence*> prefilling_;
  std::vector<ForwardItem> items_;
  std::vector<float> prompt_logits_;  ///< [prefill_chunk][vocab]
  std::size_t draft_rows_ = 0;        ///< Planned for the first draft pass of the step.
  std::size_t emitted_in_step_ = 0;
};

}  // namespace spel::engine
