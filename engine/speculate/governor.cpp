#include "engine/speculate/governor.h"

#include <algorithm>
#include <deque>
#include <utility>

namespace spel::engine {

namespace {

// Believed before anything is known, worth this many rounds. Hopeful enough to start, light enough
// that one bad round shows.
constexpr double kPriorAcceptance = 0.7;
constexpr double kPriorWeight = 1.0;
constexpr double kMemoryRounds = 24.0;
// Of the acceptance that one request hands to the next.
constexpr double kMemoryAcrossRequests = 256.0;
// However bad the last requests were, the next one is believed to be no worse than this: one
// proposal is tried.
constexpr double kLeastPrior = 0.3;
// Proposals until the first rounds have been seen: a wrong guess must stay cheap.
constexpr std::size_t kFirstK = 2;
constexpr std::size_t kFirstRounds = 2;
// Rounds in a row whose offer was refused, before it is withdrawn.
constexpr std::size_t kRefusals = 4;
constexpr std::size_t kFirstBackoffRounds = 8;
constexpr std::size_t kLastBackoffRounds = 256;
constexpr std::size_t kProbeK = 1;
// A probe is made where it would pay if the draft had become this good.
constexpr double kProbeChance = 0.9;

AcceptanceEstimate fresh_acceptance(double prior) { return {prior, kPriorWeight, kMemoryRounds}; }

class FixedGovernor final : public Governor {
 public:
  explicit FixedGovernor(std::size_t k) : k_(k), acceptance_(fresh_acceptance(kPriorAcceptance)) {}
  [[nodiscard]] Wish wish() const override { return {k_, true}; }
  [[nodiscard]] double chance(std::size_t place) const override { return acceptance_.at(place); }
  void on_round(std::size_t proposed, std::size_t accepted) override {
    acceptance_.observe(proposed, accepted);
  }

 private:
  std::size_t k_;
  AcceptanceEstimate acceptance_;
};

class TripGovernor final : public Governor {
 public:
  explicit TripGovernor(const SpeculationParams& params)
      : params_(params), acceptance_(fresh_acceptance(kPriorAcceptance)) {}

  [[nodiscard]] Wish wish() const override { return {suspended_ ? 0 : params_.k, true}; }
  [[nodiscard]] double chance(std::size_t place) const override { return acceptance_.at(place); }

  void on_round(std::size_t proposed, std::size_t accepted) override {
    if (proposed == 0 || suspended_) {
      return;
    }
    acceptance_.observe(proposed, accepted);
    rounds_.emplace_back(proposed, accepted);
    proposed_ += proposed;
    accepted_ += accepted;
    if (rounds_.size() > params_.window) {
      proposed_ -= rounds_.front().first;
      accepted_ -= rounds_.front().second;
      rounds_.pop_front();
    }
    const double alpha = static_cast<double>(accepted_) / static_cast<double>(proposed_);
    if (accepted == 0 || alpha < params_.alpha_threshold) {
      suspended_ = true;
      ++trips_;
    }
  }

 private:
  SpeculationParams params_;
  AcceptanceEstimate acceptance_;
  std::deque<std::pair<std::size_t, std::size_t>> rounds_;
  std::size_t proposed_ = 0;
  std::size_t accepted_ = 0;
  bool suspended_ = false;
};

class AdaptiveGovernor final : public Governor {
 public:
  AdaptiveGovernor(std::size_t k_max, const AcceptanceEstimate& lately)
      : k_max_(k_max), acceptance_(fresh_acceptance(std::max(kLeastPrior, lately.at(0)))) {}

  [[nodiscard]] Wish wish() const override {
    if (suspended_) {
      return {probing() ? std::min(k_max_, kProbeK) : 0, false};
    }
    return {rounds_ < kFirstRounds ? std::min(k_max_, kFirstK) : k_max_, false};
  }

  [[nodiscard]] double chance(std::size_t place) const override {
    return probing() ? kProbeChance : acceptance_.at(place);
  }

  void on_round(std::size_t proposed, std::size_t accepted) override {
    if (proposed == 0) {
      ++plain_rounds_;
      if (!suspended_ && plain_rounds_ >= kRefusals) {
        suspend();
      }
      return;
    }
    ++rounds_;
    acceptance_.observe(proposed, accepted);
    plain_rounds_ = 0;
    if (!suspended_) {
      drafted_ = true;
    } else if (accepted == proposed) {
      // Right again: what was seen before the text changed says nothing any more.
      acceptance_ = fresh_acceptance(kPriorAcceptance);
      acceptance_.observe(proposed, accepted);
      suspended_ = false;
      ++resumes_;
    } else {
      backoff_ = std::min(2 * backoff_, kLastBackoffRounds);
    }
  }

 private:
  void suspend() {
    // A resumption that led to nothing is no better than a probe that failed.
    backoff_ = drafted_ ? kFirstBackoffRounds : std::min(2 * backoff_, kLastBackoffRounds);
    drafted_ = false;
    suspended_ = true;
    plain_rounds_ = 0;
    ++trips_;
  }

  [[nodiscard]] bool probing() const { return suspended_ && plain_rounds_ >= backoff_; }

  std::size_t k_max_;
  AcceptanceEstimate acceptance_;
  std::size_t rounds_ = 0;
  std::size_t plain_rounds_ = 0;  ///< Since the last proposal, or since suspending.
  std::size_t backoff_ = kFirstBackoffRounds;
  bool suspended_ = false;
  bool drafted_ = false;  ///< Since it was last suspended.
};

}  // namespace

AcceptanceEstimate unknown_acceptance() {
  return {kPriorAcceptance, kPriorWeight, kMemoryAcrossRequests};
}

std::unique_ptr<Governor> make_governor(const SpeculationParams& params,
                                        const AcceptanceEstimate& lately) {
  switch (params.governor) {
    case GovernorKind::kOff:
      return std::make_unique<FixedGovernor>(params.k);
    case GovernorKind::kTrip:
      return std::make_unique<TripGovernor>(params);
    case GovernorKind::kAdaptive:
      return std::make_unique<AdaptiveGovernor>(params.k, lately);
  }
  return nullptr;
}

}  // namespace spel::engine
