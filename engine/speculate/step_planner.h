// Shares one step's rows among the sequences that could draft.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "engine/speculate/cost_model.h"
#include "engine/speculate/governor.h"

namespace spel::engine {

/// A sequence that decodes in this step.
struct Candidate {
  const Governor* governor = nullptr;  ///< Null: nothing is drafted for it.
  Governor::Wish wish;                 ///< At most what fits its output and its context.
  std::size_t position = 0;            ///< Of its pending token.
  std::size_t backlog = 0;             ///< Tokens its draft reads before it can propose.
  double rounds_left = 1.0;            ///< That the reading can pay for itself in.
  double pace = 1.0;                   ///< See Pace.
  std::size_t granted = 0;             ///< Out: proposals of this round.
};

/// A step as it would be if nobody proposed anything.
struct PlainStep {
  PassLoad pass;                ///< Of the target, prefill included.
  PassLoad decode;              ///< Without it.
  double seconds = 0.0;         ///< Of `pass`; 0: not known.
  double decode_seconds = 0.0;  ///< Of `decode`; 0: not known, or nobody decodes.
};

[[nodiscard]] PlainStep plain_step(std::span<const Candidate> candidates, const PassLoad& prefill,
                                   const PassCost& target);

/// A sequence's own speed, averaged over the last second, over that of the same steps without
/// anybody's proposals. Not thread-safe.
class Pace {
 public:
  /// A step of `seconds` gave it tokens that would have taken `plain_seconds` without proposals.
  void add(double plain_seconds, double seconds);
  [[nodiscard]] double value() const noexcept { return value_; }
  /// Of a step in the average.
  [[nodiscard]] static double weight_of(double seconds);

 private:
  double value_ = 1.0;
};

/// Takes the proposals of all candidates, the likeliest first, and of all beginnings of that list
/// the one with the most expected tokens a second: the cost of a pass has steps, so the first rise
/// of the cost decides nothing. Bound by two promises: nobody's pace falls below 0.9, and a step
/// without proposals is preferred unless proposals gain some per cent.
///
/// Now and then it takes what looks second best, where that is measured too long ago to be sure and
/// could be best: a cost that was measured at a bad moment would otherwise never be tried again.
/// Allocates nothing after construction. Not thread-safe.
class StepPlanner {
 public:
  StepPlanner(std::size_t sequences, std::size_t k_max);

  /// Fills in `granted`. `plain`: the same step without proposals.
  void plan(std::span<Candidate> candidates, const PlainStep& plain, const CostModel& costs,
            Clock::time_point now);

 private:
  /// One proposal that could be made.
  struct Place {
    std::size_t candidate = 0;
    std::size_t place = 0;
    double chance = 0.0;  ///< That it becomes output.
    bool fixed = false;
  };
  /// A beginning of the list.
  struct Choice {
    std::size_t places = 0;
    double rate = 0.0;  ///< Expected tokens a second.
  };

  void list_places(std::span<const Candidate> candidates);
  [[nodiscard]] std::size_t choose(std::span<const Candidate> candidates, const PlainStep& plain,
                                   const CostModel& costs, Clock::time_point now);
  [[nodiscard]] bool spares_bystanders(std::span<const Candidate> candidates, double plain,
                                       double seconds) const;
  [[nodiscard]] double add_draft_seconds(const Place& place, const Candidate& candidate,
                                         const CostModel& costs);

  std::vector<Place> places_;
  std::vector<PassLoad> draft_passes_;  ///< [k_max], by place in the round.
  std::vector<double> tokens_;          ///< [sequences], expected.
  Clock::time_point tried_at_;
  Clock::time_point went_plain_at_;
};

}  // namespace spel::engine
