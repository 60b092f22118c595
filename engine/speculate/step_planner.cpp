#include "engine/speculate/step_planner.h"

#include <algorithm>
#include <cmath>

namespace spel::engine {
namespace {

// Speculation must promise this much before it replaces a plain step.
constexpr double kMinimalGain = 1.03;
// Nobody is slowed down further than this by the proposals of a step.
constexpr double kLeastPace = 0.9;
constexpr double kPaceSeconds = 1.0;
// A draft reads its backlog once and proposes for many rounds after.
constexpr double kBacklogRounds = 8.0;
// Between two trials of a cost that is not known well, and between two plain steps of a server that
// always drafts: each costs a fraction of one step.
constexpr double kTrialSeconds = 0.1;
constexpr double kPlainSeconds = 1.0;
constexpr double kDoubtful = 0.15;

}  // namespace

double Pace::weight_of(double seconds) { return 1.0 - std::exp(-seconds / kPaceSeconds); }

void Pace::add(double plain_seconds, double seconds) {
  if (seconds > 0.0) {
    value_ += weight_of(seconds) * (plain_seconds / seconds - value_);
  }
}

PlainStep plain_step(std::span<const Candidate> candidates, const PassLoad& prefill,
                     const PassCost& target) {
  PlainStep step;
  for (const Candidate& candidate : candidates) {
    step.decode += PassLoad::of_rows(1, candidate.position);
  }
  step.pass = prefill;
  step.pass += step.decode;
  step.seconds = target.estimate(step.pass);
  step.decode_seconds = candidates.empty() ? 0.0 : target.estimate(step.decode);
  return step;
}

StepPlanner::StepPlanner(std::size_t sequences, std::size_t k_max) : draft_passes_(k_max) {
  places_.reserve(sequences * k_max);
  tokens_.reserve(sequences);
}

void StepPlanner::plan(std::span<Candidate> candidates, const PlainStep& plain,
                       const CostModel& costs, Clock::time_point now) {
  for (Candidate& candidate : candidates) {
    candidate.granted = 0;
  }
  list_places(candidates);
  if (places_.empty()) {
    return;
  }
  const std::size_t taken = choose(candidates, plain, costs, now);
  for (std::size_t i = 0; i < taken; ++i) {
    ++candidates[places_[i].candidate].granted;
  }
}

// The likeliest first; what is fixed before what is offered. A sequence's own places come in order,
// since the chance of a place includes those of the places before it.
void StepPlanner::list_places(std::span<const Candidate> candidates) {
  places_.clear();
  for (std::size_t i = 0; i < candidates.size(); ++i) {
    const Candidate& candidate = candidates[i];
    double chance = 1.0;
    for (std::size_t place = 0; place < candidate.wish.k; ++place) {
      chance *= candidate.governor->chance(place);
      places_.push_back({i, place, chance, candidate.wish.fixed});
    }
  }
  std::sort(places_.begin(), places_.end(), [](const Place& a, const Place& b) {
    if (a.fixed != b.fixed) {
      return a.fixed;
    }
    if (a.chance != b.chance) {
      return a.chance > b.chance;
    }
    return a.place != b.place ? a.place < b.place : a.candidate < b.candidate;
  });
}

// What one more proposal adds to the draft's passes of the round.
double StepPlanner::add_draft_seconds(const Place& place, const Candidate& candidate,
                                      const CostModel& costs) {
  PassLoad& pass = draft_passes_[place.place];
  const double before = pass.rows > 0.0 ? costs.draft.estimate(pass) : 0.0;
  pass += PassLoad::of_rows(1, candidate.position + place.place);
  double seconds = costs.draft.estimate(pass) - before;
  if (place.place == 0 && candidate.backlog > 0) {
    const PassLoad backlog = PassLoad::of_rows(candidate.backlog, 0);
    PassLoad with = pass;
    with += backlog;
    seconds += (costs.draft.estimate(with) - costs.draft.estimate(pass)) /
               std::clamp(candidate.rounds_left, 1.0, kBacklogRounds);
  }
  return seconds;
}

// Whoever asked for a fixed number of proposals has chosen the pace.
bool StepPlanner::spares_bystanders(std::span<const Candidate> candidates, double plain,
                                    double seconds) const {
  const double weight = Pace::weight_of(seconds);
  for (std::size_t i = 0; i < candidates.size(); ++i) {
    const Candidate& candidate = candidates[i];
    const double pace = tokens_[i] * plain / seconds;
    const bool chosen = candidate.wish.fixed && candidate.wish.k > 0;
    if (!chosen && pace < 1.0 && candidate.pace + weight * (pace - candidate.pace) < kLeastPace) {
      return false;
    }
  }
  return true;
}

std::size_t StepPlanner::choose(std::span<const Candidate> candidates, const PlainStep& plain,
                                const CostModel& costs, Clock::time_point now) {
  const auto fixed = static_cast<std::size_t>(
      std::count_if(places_.begin(), places_.end(), [](const Place& p) { return p.fixed; }));
  if (!costs.target.known() || !costs.draft.known()) {
    return places_.size();  // What it costs is learnt from the first rounds.
  }
  PassLoad pass = plain.pass;
  // Prefill is work that stays to be done: only what decoding adds to it counts.
  const double base = plain.decode_seconds;

  std::fill(draft_passes_.begin(), draft_passes_.end(), PassLoad{});
  tokens_.assign(candidates.size(), 1.0);
  double expected = static_cast<double>(candidates.size());
  double draft_seconds = 0.0;
  Choice best{0, expected / base};
  Choice trial{0, 0.0};
  for (std::size_t i = 0; i < places_.size(); ++i) {
    const Place& place = places_[i];
    const Candidate& candidate = candidates[place.candidate];
    draft_seconds += add_draft_seconds(place, candidate, costs);
    pass += PassLoad::of_rows(1, candidate.position + place.place + 1);
    tokens_[place.candidate] += place.chance;
    expected += place.chance;

    const double more = costs.target.estimate(pass) - plain.seconds + draft_seconds;
    if (!spares_bystanders(candidates, plain.seconds, plain.seconds + more)) {
      continue;
    }
    const double rate = expected / (base + more);
    if (i < fixed) {
      best = {i + 1, rate};
      continue;
    }
    // The first proposals offered have to promise some gain over none.
    if (rate > best.rate * (best.places <= fixed ? kMinimalGain : 1.0)) {
      best = {i + 1, rate};
    }
    const double hoped =
        expected / (base + costs.target.least(pass) - plain.seconds + draft_seconds);
    if (hoped > trial.rate && costs.target.doubt(pass.rows) > kDoubtful) {
      trial = {i + 1, hoped};
    }
  }
  if (fixed == places_.size()) {
    return best.places;
  }
  const bool plain_doubtful = costs.target.doubt(plain.decode.rows) > kDoubtful;
  if (best.places > fixed && plain_doubtful &&
      seconds_between(went_plain_at_, now) > kPlainSeconds) {
    went_plain_at_ = now;
    return fixed;
  }
  if (trial.places > 0 && trial.places != best.places && trial.rate > best.rate &&
      seconds_between(tried_at_, now) > kTrialSeconds) {
    tried_at_ = now;
    return trial.places;
  }
  return best.places;
}

}  // namespace spel::engine
