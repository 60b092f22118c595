#include "engine/speculate/governor.h"

#include <cmath>
#include <gtest/gtest.h>

namespace spel::engine {
namespace {

SpeculationParams params(GovernorKind kind, std::size_t k) {
  SpeculationParams p;
  p.governor = kind;
  p.k = k;
  return p;
}

std::unique_ptr<Governor> governor_of(const SpeculationParams& p) {
  return make_governor(p, unknown_acceptance());
}

TEST(AcceptanceEstimate, CountsOnlyPositionsThatWereReached) {
  AcceptanceEstimate estimate(0.5, 1e-9, 1e9);
  estimate.observe(4, 1);  // The first was accepted, the second was not, the rest never judged.
  EXPECT_NEAR(estimate.at(0), 1.0, 1e-6);
  EXPECT_NEAR(estimate.at(1), 0.0, 1e-6);
}

TEST(OffGovernor, AlwaysProposesK) {
  const auto governor = governor_of(params(GovernorKind::kOff, 5));
  for (int i = 0; i < 50; ++i) {
    EXPECT_EQ(governor->wish().k, 5U);
    EXPECT_TRUE(governor->wish().fixed);
    governor->on_round(5, 0);
  }
  EXPECT_EQ(governor->trips(), 0U);
}

TEST(TripGovernor, SuspendsForGoodAfterARoundThatAcceptsNothing) {
  const auto governor = governor_of(params(GovernorKind::kTrip, 4));
  governor->on_round(4, 4);
  EXPECT_EQ(governor->wish().k, 4U);
  governor->on_round(4, 0);
  for (int i = 0; i < 100; ++i) {
    EXPECT_EQ(governor->wish().k, 0U);
    governor->on_round(0, 0);
  }
  EXPECT_EQ(governor->trips(), 1U);
  EXPECT_EQ(governor->resumes(), 0U);
}

TEST(TripGovernor, SuspendsWhenTheWindowFallsBelowTheThreshold) {
  SpeculationParams p = params(GovernorKind::kTrip, 4);
  p.alpha_threshold = 0.5;
  p.window = 4;
  const auto governor = governor_of(p);
  for (int i = 0; i < 10; ++i) {
    governor->on_round(4, 4);
  }
  governor->on_round(4, 1);
  governor->on_round(4, 1);
  EXPECT_EQ(governor->wish().k, 4U);  // 10 of 16.
  governor->on_round(4, 1);
  EXPECT_EQ(governor->wish().k, 0U);  // 7 of 16.
}

TEST(AdaptiveGovernor, OffersEverythingAfterAFewRounds) {
  const auto governor = governor_of(params(GovernorKind::kAdaptive, 16));
  EXPECT_EQ(governor->wish().k, 2U);  // A wrong guess has to stay cheap.
  governor->on_round(2, 2);
  governor->on_round(2, 2);
  EXPECT_EQ(governor->wish().k, 16U);
  EXPECT_FALSE(governor->wish().fixed);
}

TEST(AdaptiveGovernor, StartsFromWhatTheLastRequestsSaw) {
  AcceptanceEstimate lately = unknown_acceptance();
  for (int i = 0; i < 200; ++i) {
    lately.observe(4, 0);
  }
  const auto after_bad = make_governor(params(GovernorKind::kAdaptive, 4), lately);
  for (int i = 0; i < 2000; ++i) {
    lately.observe(4, 4);
  }
  const auto after_good = make_governor(params(GovernorKind::kAdaptive, 4), lately);
  EXPECT_LT(after_bad->chance(0), 0.4);
  EXPECT_GT(after_good->chance(0), 0.9);
}

TEST(AdaptiveGovernor, WithdrawsAnOfferThatIsRefusedAndProbesEverMoreRarely) {
  const auto governor = governor_of(params(GovernorKind::kAdaptive, 16));
  std::size_t probes = 0;
  for (int i = 0; i < 1000; ++i) {
    const std::size_t k = governor->wish().k;
    if (governor->trips() == 0) {
      governor->on_round(0, 0);  // The planner does not think it pays.
    } else {
      probes += k > 0 ? 1 : 0;
      EXPECT_LE(k, 1U);
      governor->on_round(k, 0);
    }
  }
  EXPECT_EQ(governor->trips(), 1U);
  EXPECT_GE(probes, 3U);
  EXPECT_LE(probes, 7U);
}

TEST(AdaptiveGovernor, ResumesAfterAProbeThatIsAccepted) {
  const auto governor = governor_of(params(GovernorKind::kAdaptive, 8));
  while (governor->trips() == 0) {
    governor->on_round(0, 0);
  }
  while (governor->wish().k == 0) {
    governor->on_round(0, 0);
  }
  EXPECT_GT(governor->chance(0), 0.8);  // The planner is to let it through if that would pay.
  governor->on_round(1, 1);
  EXPECT_EQ(governor->resumes(), 1U);
  EXPECT_GT(governor->wish().k, 1U);
}

}  // namespace
}  // namespace spel::engine
