// One step of the continuous batch: plan, draft, forward, verify, emit.
#pragma once

#include <cstddef>
#include <exception>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "engine/engine.h"
#include "engine/pass_clock.h"
#include "engine/prefix_cache.h"
#include "engine/recent_rounds.h"
#include "engine/sequence.h"
#include "engine/speculate/acceptance.h"
#include "engine/speculate/cost_model.h"
#include "engine/speculate/step_planner.h"
#include "engine/tokenizer.h"

namespace spel::engine {

/// Runs the models over the sequences it is given. Engine thread only; allocates nothing per token
/// unless logprobs are asked for.
class Stepper {
 public:
  Stepper(const EngineConfig& config, CausalModel& target, CausalModel* draft,
          const Tokenizer& tokenizer);

  /// Measures passes of all sizes on `scratch`, so that the first receipts have a unit.
  void calibrate(Sequence& scratch);
  /// For a moment with nothing to do: measures one size of pass on `scratch`, if one has not been
  /// measured for long, and sets when the next may be: all of it takes less than a hundredth of a
  /// core. Before that it does nothing. `scratch` must serve no request.
  void measure_idle(Sequence& scratch);
  [[nodiscard]] Clock::time_point next_idle_measurement() const { return next_measurement_; }

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

 private:
  // step_plan.cpp
  void plan(std::span<const std::unique_ptr<Sequence>> sequences);
  void offer(Sequence& sequence);
  void grant();
  void plan_prefill(std::span<const std::unique_ptr<Sequence>> sequences);
  [[nodiscard]] std::size_t draft_start_of(const Sequence& sequence) const;
  // step.cpp
  void draft();
  void propose(std::size_t place);
  void forward();
  void observe(PassCost& cost, const PassLoad& load, double seconds, bool settled);
  // step_commit.cpp
  void commit();
  void verify(Sequence& sequence);
  void account(Sequence& sequence, std::size_t emitted);
  bool emit_first(Sequence& sequence, std::span<const float> logits);
  void finish_prefill_chunk(Sequence& sequence, const float* chunk_logits);
  void record_prompt_logprobs(Sequence& sequence, const float* chunk_logits);
  bool emit(Sequence& sequence, TokenId token, std::int32_t draft_position,
            std::span<const float> logits);
  /// The tokens that end `request`'s text when they are chosen.
  [[nodiscard]] std::vector<TokenId> end_tokens(const GenerationRequest& request) const;
  /// The stop string that the last token's bytes complete, if it may end the text yet.
  [[nodiscard]] static std::optional<StopMatcher::Match> find_stop(Sequence& sequence,
                                                                   std::string_view bytes);
  void finish(Sequence& sequence);
  void record_round(Sequence& sequence, std::size_t accepted, std::size_t discarded);
  void keep_prompt(Sequence& sequence);
  // step_measure.cpp
  [[nodiscard]] std::size_t rows_measured(const CausalModel& model) const;
  [[nodiscard]] double measure(CausalModel& model, Sequence& scratch, std::size_t rows,
                               std::chrono::milliseconds warm_up);
  void propose_for_nobody(SequenceState& state, float* logits, std::size_t proposals);
  void calibrate(CausalModel& model, Sequence& scratch, PassCost& cost);
  bool measure_stalest(CausalModel& model, Sequence& scratch, PassCost& cost);

  /// The step being run, in passes.
  struct Step {
    Clock::time_point began = Clock::now();
    PassClock clock;
    PassLoad prefill;  ///< Of the target's pass.
    PassLoad decode;   ///< Of it, proposals included.
    bool proposals = false;
    PlainStep plain;
  };

  EngineConfig config_;
  CausalModel& target_;
  CausalModel* draft_;  ///< May be null.
  const Tokenizer& tokenizer_;
  std::size_t vocab_;
  PrefixCache prefix_cache_;
  CostModel costs_;
  Settling settling_;
  AcceptanceEstimate lately_ = unknown_acceptance();  ///< Over all requests.
  StepPlanner planner_;
  RecentRounds recent_;
  EngineStats stats_;
  std::vector<Sequence*> running_;  ///< Planned for this step.
  std::vector<Sequence*> prefilling_;
  std::vector<ForwardItem> items_;
  std::vector<Candidate> candidates_;  ///< The decoding ones of running_, which come first.
  std::vector<float> prompt_logits_;   ///< [prefill_chunk][vocab]
  Step step_;
  std::size_t emitted_in_step_ = 0;
  std::size_t position_ = 0;  ///< Of the last round: where the gauges take c and v.
  Clock::time_point next_measurement_;
};

}  // namespace spel::engine
