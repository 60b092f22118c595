// One step of the continuous batch: plan, draft, forward, verify.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "engine/engine_config.h"
#include "engine/schedule/books.h"
#include "engine/schedule/lifecycle.h"
#include "engine/schedule/sequence.h"
#include "engine/speculate/drafter.h"
#include "engine/speculate/pass_clock.h"
#include "engine/speculate/step_planner.h"

namespace spel::engine {

/// Runs target and drafter over the sequences it is given. Engine thread only; allocates nothing
/// per token.
class Stepper {
 public:
  /// Keeps all of them by reference. `drafter` may be null.
  Stepper(const EngineConfig& config, CausalModel& target, Drafter* drafter, Books& books,
          Lifecycle& life);

  /// Advances every active sequence that is not parked. Sequences that end have their FinishEvent
  /// pushed and become inactive. Returns false if there was nothing to do.
  bool run(std::span<const std::unique_ptr<Sequence>> sequences);

  /// The books' counters and gauges, brought up to date.
  [[nodiscard]] const EngineStats& stats();

 private:
  // plan.cpp
  void plan(std::span<const std::unique_ptr<Sequence>> sequences);
  void offer(Sequence& sequence);
  void grant();
  void plan_prefill(std::span<const std::unique_ptr<Sequence>> sequences);
  // step.cpp
  void draft();
  void forward();
  void commit();
  void finish_prefill_chunk(Sequence& sequence, const float* chunk_logits);
  void record_prompt_logprobs(Sequence& sequence, const float* chunk_logits);
  void verify(Sequence& sequence);
  void account(Sequence& sequence, std::size_t emitted);
  void record_round(Sequence& sequence, std::size_t accepted, std::size_t discarded);

  /// Teaches one cost what its passes take.
  class Observer final : public PassObserver {
   public:
    Observer(PassCost& cost, Settling& settling) : cost_(cost), settling_(settling) {}
    [[nodiscard]] bool settled(double rows) const override {
      return settling_.settled(rows, Clock::now());
    }
    void observe(const PassLoad& load, double seconds, bool settled) override;

   private:
    PassCost& cost_;
    Settling& settling_;
  };

  /// The step being run, in passes.
  struct Step {
    Clock::time_point began = Clock::now();
    PassClock clock;
    PassLoad prefill;  ///< Of the target's pass.
    PassLoad decode;   ///< Of it, proposals included.
    bool proposals = false;
    PlainStep plain;
  };

  const EngineConfig& config_;
  CausalModel& target_;
  Drafter* drafter_;
  Books& books_;
  Lifecycle& life_;
  std::size_t vocab_;
  EngineStats& stats_ = books_.stats;
  CostModel& costs_ = books_.costs;
  Settling settling_;
  Observer target_observer_;
  Observer draft_observer_;
  StepPlanner planner_;
  std::vector<Sequence*> running_;  ///< Planned for this step.
  std::vector<Sequence*> prefilling_;
  std::vector<ForwardItem> items_;
  std::vector<DraftItem> draft_items_;
  std::vector<Candidate> candidates_;  ///< The decoding ones of running_, which come first.
  std::vector<float> prompt_logits_;   ///< [prefill_chunk][vocab]
  Step step_;
  std::size_t position_ = 0;  ///< Of the last round: where the gauges take c and v.
};

}  // namespace spel::engine
