#include "engine/speculate/governor.h"

#include <gtest/gtest.h>

namespace spel::engine {
namespace {

// A target whose verification is cheap and a draft that costs a twentieth of it.
CostModel cheap_costs() {
  CostModel costs;
  costs.target.calibrate(1, 1.0);
  costs.target.calibrate(5, 1.2);
  costs.target.calibrate(17, 1.8);
  costs.draft.calibrate(1, 0.05);
  return costs;
}

SpeculationParams params(GovernorKind kind, std::size_t k) {
  SpeculationParams p;
  p.governor = kind;
  p.k = k;
  return p;
}

TEST(CostModel, InterpolatesBetweenWhatWasObserved) {
  const CostModel costs = cheap_costs();
  EXPECT_DOUBLE_EQ(costs.ar_seconds(), 1.0);
  EXPECT_DOUBLE_EQ(costs.c(), 0.05);
  EXPECT_DOUBLE_EQ(costs.v(4), 1.2);
  EXPECT_NEAR(costs.v(2), 1.1, 1e-12);
  EXPECT_NEAR(costs.v(10), 1.5, 1e-12);
}

TEST(CostModel, OneLatePassMovesTheEstimateOnlyALittle) {
  RowCost cost;
  cost.calibrate(1, 1.0);
  cost.observe(1, 1000.0);
  EXPECT_LT(cost.estimate(1), 1.2);
}

TEST(CostModel, OneRowCountKeepsTheOthersCurrent) {
  CostModel costs = cheap_costs();
  for (int i = 0; i < 100; ++i) {
    costs.target.observe(1, 3.0);  // The machine has become three times as slow.
  }
  EXPECT_NEAR(costs.target.estimate(1), 3.0, 0.1);
  EXPECT_NEAR(costs.target.estimate(5), 3.6, 0.9);
}

TEST(CostModel, TheFastestCalibrationCounts) {
  RowCost cost;
  cost.calibrate(5, 9.0);
  cost.calibrate(5, 2.0);
  cost.calibrate(5, 3.0);
  EXPECT_DOUBLE_EQ(cost.estimate(5), 2.0);
}

TEST(CostModel, ProjectsTheDocumentsSpeedup) {
  EXPECT_NEAR(projected_speedup(0.75, 16, 0.12, 2.7), 13.0 / (17 * 0.12 + 2.7), 1e-12);
}

TEST(AcceptanceEstimate, CountsOnlyPositionsThatWereReached) {
  AcceptanceEstimate estimate(0.5, 1e-9, 1e9);
  estimate.observe(4, 1);  // The first was accepted, the second was not, the rest never judged.
  EXPECT_NEAR(estimate.at(0), 1.0, 1e-6);
  EXPECT_NEAR(estimate.at(1), 0.0, 1e-6);
}

TEST(OffGovernor, AlwaysProposesK) {
  const auto governor = make_governor(params(GovernorKind::kOff, 5));
  for (int i = 0; i < 50; ++i) {
    EXPECT_EQ(governor->choose_k({}), 5U);
    governor->on_round(5, 0);
  }
  EXPECT_EQ(governor->trips(), 0U);
}

TEST(TripGovernor, SuspendsForGoodAfterARoundThatAcceptsNothing) {
  const auto governor = make_governor(params(GovernorKind::kTrip, 4));
  governor->on_round(4, 4);
  EXPECT_EQ(governor->choose_k({}), 4U);
  governor->on_round(4, 0);
  for (int i = 0; i < 100; ++i) {
    EXPECT_EQ(governor->choose_k({}), 0U);
    governor->on_round(0, 0);
  }
  EXPECT_EQ(governor->trips(), 1U);
  EXPECT_EQ(governor->resumes(), 0U);
}

TEST(TripGovernor, SuspendsWhenTheWindowFallsBelowTheThreshold) {
  SpeculationParams p = params(GovernorKind::kTrip, 4);
  p.alpha_threshold = 0.5;
  p.window = 4;
  const auto governor = make_governor(p);
  for (int i = 0; i < 10; ++i) {
    governor->on_round(4, 4);
  }
  governor->on_round(4, 1);
  governor->on_round(4, 1);
  EXPECT_EQ(governor->choose_k({}), 4U);  // 10 of 16.
  governor->on_round(4, 1);
  EXPECT_EQ(governor->choose_k({}), 0U);  // 7 of 16.
}

TEST(AdaptiveGovernor, ProposesMoreTheMoreIsAccepted) {
  const CostModel costs = cheap_costs();
  std::size_t last = 0;
  for (const double acceptance : {0.3, 0.6, 0.9}) {
    const auto governor = make_governor(params(GovernorKind::kAdaptive, 16));
    double credit = 0.0;
    std::size_t k = 0;
    for (int i = 0; i < 200; ++i) {
      k = governor->choose_k({&costs, 1});
      std::size_t accepted = 0;
      // A deterministic stand-in for coin flips.
      for (; accepted < k; ++accepted) {
        credit += acceptance;
        if (credit < 1.0) {
          break;
        }
        credit -= 1.0;
      }
      governor->on_round(k, accepted);
    }
    EXPECT_GE(k, last) << acceptance;
    last = k;
  }
  EXPECT_GE(last, 6U);
}

TEST(AdaptiveGovernor, GivesUpOnAHopelessDraftAndProbesEverMoreRarely) {
  const CostModel costs = cheap_costs();
  const auto governor = make_governor(params(GovernorKind::kAdaptive, 16));
  std::size_t proposed = 0;
  for (int i = 0; i < 1000; ++i) {
    const std::size_t k = governor->choose_k({&costs, 1});
    proposed += k;
    governor->on_round(k, 0);
  }
  EXPECT_GE(governor->trips(), 1U);
  EXPECT_LT(proposed, 30U);
}

TEST(AdaptiveGovernor, ResumesWhenTheDraftIsRightAgain) {
  const CostModel costs = cheap_costs();
  const auto governor = make_governor(params(GovernorKind::kAdaptive, 8));
  for (int i = 0; i < 100; ++i) {
    governor->on_round(governor->choose_k({&costs, 1}), 0);
  }
  std::size_t proposed = 0;
  for (int i = 0; i < 600; ++i) {
    const std::size_t k = governor->choose_k({&costs, 1});
    proposed += k;
    governor->on_round(k, k);
  }
  EXPECT_GE(governor->resumes(), 1U);
  EXPECT_GT(proposed, 1000U);
}

TEST(AdaptiveGovernor, DoesNotProposeWhatCannotPay) {
  CostModel costs;
  costs.target.calibrate(1, 1.0);
  costs.target.calibrate(5, 5.0);  // Verification as dear as decoding one by one.
  costs.draft.calibrate(1, 0.2);
  const auto governor = make_governor(params(GovernorKind::kAdaptive, 8));
  std::size_t late = 0;
  for (int i = 0; i < 300; ++i) {
    const std::size_t k = governor->choose_k({&costs, 1});
    governor->on_round(k, k);
    late += i > 20 ? k : 0;
  }
  EXPECT_LT(late, 60U);
}

}  // namespace
}  // namespace spel::engine
