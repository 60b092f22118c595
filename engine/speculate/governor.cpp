#include "engine/speculate/governor.h"

#include <algorithm>
#include <cmath>
#include <deque>
#include <utility>

namespace spel::engine {

AcceptanceEstimate::AcceptanceEstimate(double prior, double prior_weight, double memory)
    : prior_(prior), prior_weight_(prior_weight), decay_(1.0 - 1.0 / memory) {}

void AcceptanceEstimate::observe(std::size_t proposed, std::size_t accepted) {
  // Positions 0 … accepted were reached; all but the last of them surely accepted.
  const std::size_t reached = std::min(proposed, accepted + 1);
  for (std::size_t i = 0; i < reached; ++i) {
    reached_[i] = reached_[i] * decay_ + 1.0;
    accepted_[i] = accepted_[i] * decay_ + (i < accepted ? 1.0 : 0.0);
  }
}

double AcceptanceEstimate::at(std::size_t position) const {
  double estimate = prior_;
  for (std::size_t i = 0; i <= position; ++i) {
    estimate = (accepted_[i] + prior_weight_ * estimate) / (reached_[i] + prior_weight_);
  }
  return estimate;
}

double AcceptanceEstimate::expected_tokens(std::size_t k) const {
  double tokens = 1.0;
  double prefix = 1.0;
  double estimate = prior_;
  for (std::size_t i = 0; i < k; ++i) {
    estimate = (accepted_[i] + prior_weight_ * estimate) / (reached_[i] + prior_weight_);
    prefix *= estimate;
    tokens += prefix;
  }
  return tokens;
}

namespace {

class FixedGovernor final : public Governor {
 public:
  explicit FixedGovernor(std::size_t k) : k_(k) {}
  [[nodiscard]] std::size_t choose_k(const RoundContext& /*context*/) override { return k_; }
  void on_round(std::size_t /*proposed*/, std::size_t /*accepted*/) override {}

 private:
  std::size_t k_;
};

class TripGovernor final : public Governor {
 public:
  explicit TripGovernor(const SpeculationParams& params) : params_(params) {}

  [[nodiscard]] std::size_t choose_k(const RoundContext& /*context*/) override {
    return suspended_ ? 0 : params_.k;
  }

  void on_round(std::size_t proposed, std::size_t accepted) override {
    if (proposed == 0 || suspended_) {
      return;
    }
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
  std::deque<std::pair<std::size_t, std::size_t>> rounds_;
  std::size_t proposed_ = 0;
  std::size_t accepted_ = 0;
  bool suspended_ = false;
};

// Believed before anything is known, worth this many rounds. Hopeful enough to start, light enough
// that one bad round shows.
constexpr double kPriorAcceptance = 0.7;
constexpr double kPriorWeight = 1.0;
constexpr double kMemoryRounds = 24.0;
// Proposals until the first rounds have been seen: a wrong guess must stay cheap.
constexpr std::size_t kFirstK = 2;
constexpr std::size_t kFirstRounds = 2;
// Speculation must promise this much before it replaces a plain step.
constexpr double kMinimalGain = 1.03;
constexpr std::size_t kFirstBackoffRounds = 16;
constexpr std::size_t kLastBackoffRounds = 256;
constexpr std::size_t kProbeK = 1;

class AdaptiveGovernor final : public Governor {
 public:
  explicit AdaptiveGovernor(std::size_t k_max)
      : k_max_(k_max), acceptance_(kPriorAcceptance, kPriorWeight, kMemoryRounds) {}

  [[nodiscard]] std::size_t choose_k(const RoundContext& context) override {
    if (k_max_ == 0) {
      return 0;
    }
    if (suspended_ && plain_rounds_ < backoff_) {
      return 0;
    }
    if (suspended_) {
      probing_ = true;
      return std::min(k_max_, kProbeK);
    }
    if (rounds_ < kFirstRounds) {
      return std::min(k_max_, kFirstK);
    }
    const std::size_t best = best_k(context);
    if (best == 0) {
      suspend();
    }
    return best;
  }

  void on_round(std::size_t proposed, std::size_t accepted) override {
    if (proposed == 0) {
      ++plain_rounds_;
      return;
    }
    ++rounds_;
    acceptance_.observe(proposed, accepted);
    if (!probing_) {
      return;
    }
    probing_ = false;
    if (accepted == proposed) {
      // Another probe at once: the estimate decides as soon as it is worth it.
      suspended_ = false;
      ++resumes_;
    } else {
      plain_rounds_ = 0;
      backoff_ = std::min(2 * backoff_, kLastBackoffRounds);
    }
  }

 private:
  void suspend() {
    suspended_ = true;
    plain_rounds_ = 0;
    ++trips_;
  }

  // The k that maximises expected tokens per second if every sequence of the step chose it.
  [[nodiscard]] std::size_t best_k(const RoundContext& context) const {
    const auto sequences = static_cast<double>(std::max<std::size_t>(1, context.sequences));
    const double plain = context.costs->target.estimate(sequences);
    const double draft = context.costs->draft.estimate(sequences);
    if (plain <= 0.0 || draft <= 0.0) {
      return std::min(k_max_, kFirstK);
    }
    std::size_t best = 0;
    double best_rate = kMinimalGain / plain;
    for (std::size_t k = 1; k <= k_max_; ++k) {
      const auto proposals = static_cast<double>(k);
      const double seconds =
          context.costs->target.estimate(sequences * (proposals + 1.0)) + (proposals + 0.5) * draft;
      const double rate = acceptance_.expected_tokens(k) / seconds;
      if (rate > best_rate) {
        best_rate = rate;
        best = k;
      }
    }
    return best;
  }

  std::size_t k_max_;
  AcceptanceEstimate acceptance_;
  std::size_t rounds_ = 0;
  std::size_t plain_rounds_ = 0;
  std::size_t backoff_ = kFirstBackoffRounds;
  bool suspended_ = false;
  bool probing_ = false;
};

}  // namespace

std::unique_ptr<Governor> make_governor(const SpeculationParams& params) {
  switch (params.governor) {
    case GovernorKind::kOff:
      return std::make_unique<FixedGovernor>(params.k);
    case GovernorKind::kTrip:
      return std::make_unique<TripGovernor>(params);
    case GovernorKind::kAdaptive:
      return std::make_unique<AdaptiveGovernor>(params.k);
  }
  return nullptr;
}

}  // namespace spel::engine
