#include "engine/speculate/step_planner.h"

#include <algorithm>
#include <chrono>
#include <gtest/gtest.h>
#include <vector>

namespace spel::engine {
namespace {

/// Accepts every proposal with the same chance.
class ChanceGovernor final : public Governor {
 public:
  explicit ChanceGovernor(double chance) : chance_(chance) {}
  [[nodiscard]] Wish wish() const override { return {16, false}; }
  [[nodiscard]] double chance(std::size_t /*place*/) const override { return chance_; }
  void on_round(std::size_t /*proposed*/, std::size_t /*accepted*/) override {}

 private:
  double chance_;
};

class StepPlannerTest : public ::testing::Test {
 protected:
  // A target whose verification is cheap and a draft that costs a twentieth of it.
  StepPlannerTest() {
    set_target({{1, 1.0}, {5, 1.2}, {17, 1.8}, {33, 3.4}, {65, 6.8}, {129, 13.6}, {257, 27.2}});
    for (const std::size_t rows : PassCost::kRows) {
      costs_.draft.calibrate(rows, 0.05 + 0.005 * static_cast<double>(rows), 0.0, now_);
    }
  }

  void set_target(const std::vector<std::pair<std::size_t, double>>& points) {
    for (const std::size_t rows : PassCost::kRows) {
      for (std::size_t i = 0; i + 1 < points.size(); ++i) {
        const auto& [m0, t0] = points[i];
        const auto& [m1, t1] = points[i + 1];
        if (m0 <= rows && rows <= m1) {
          const double share = static_cast<double>(rows - m0) / static_cast<double>(m1 - m0);
          costs_.target.calibrate(rows, t0 + share * (t1 - t0), 0.0, now_);
        }
      }
    }
  }

  std::vector<std::size_t> plan(const std::vector<const Governor*>& governors,
                                const PassLoad& prefill = {}, bool fixed = false) {
    std::vector<Candidate> candidates(governors.size());
    for (std::size_t i = 0; i < governors.size(); ++i) {
      candidates[i].governor = governors[i];
      candidates[i].wish = governors[i] != nullptr ? governors[i]->wish() : Governor::Wish{};
      candidates[i].wish.fixed = fixed && governors[i] != nullptr;
      candidates[i].rounds_left = 20.0;
      candidates[i].pace = pace_;
    }
    planner_.plan(candidates, plain_step(candidates, prefill, costs_.target), costs_, now_);
    std::vector<std::size_t> granted;
    for (const Candidate& candidate : candidates) {
      granted.push_back(candidate.granted);
    }
    return granted;
  }

  CostModel costs_;
  Clock::time_point now_ = Clock::time_point{} + std::chrono::hours(1);
  StepPlanner planner_{16, 16};
  double pace_ = 1.0;
};

TEST_F(StepPlannerTest, ProposesMoreTheLikelierItIs) {
  std::size_t last = 0;
  for (const double chance : {0.3, 0.6, 0.9, 0.99}) {
    const ChanceGovernor governor(chance);
    const std::size_t k = plan({&governor}).front();
    EXPECT_GE(k, last) << chance;
    last = k;
  }
  EXPECT_EQ(last, 16U);
}

TEST_F(StepPlannerTest, ProposesNothingThatCannotPay) {
  const ChanceGovernor hopeless(0.02);
  EXPECT_EQ(plan({&hopeless}).front(), 0U);
  // Verification as dear as decoding one by one.
  set_target({{1, 1.0}, {257, 257.0}});
  const ChanceGovernor good(0.9);
  EXPECT_EQ(plan({&good}).front(), 0U);
}

TEST_F(StepPlannerTest, LooksPastAStepOfTheCost) {
  // The second row costs as much as the next fifteen together.
  set_target({{1, 1.0}, {2, 1.9}, {17, 2.0}, {257, 30.0}});
  const ChanceGovernor governor(0.97);
  EXPECT_GE(plan({&governor}).front(), 10U);
}

TEST_F(StepPlannerTest, GivesTheRowsToThoseWhoseProposalsAreLikelier) {
  const ChanceGovernor good(0.95);
  const ChanceGovernor bad(0.1);
  const auto granted = plan({&bad, &good, &bad, &good});
  EXPECT_GT(granted[1], granted[0]);
  EXPECT_GT(granted[3], granted[2]);
}

TEST_F(StepPlannerTest, DoesNotSlowDownThoseWhoDraftNothing) {
  const ChanceGovernor good(0.99);
  const auto granted = plan({&good, nullptr, nullptr, nullptr});
  EXPECT_GT(granted[0], 0U);
  PassLoad with;
  with.rows = 4.0 + static_cast<double>(granted[0]);
  double seconds = costs_.target.estimate(with);
  for (std::size_t place = 0; place < granted[0]; ++place) {
    seconds += costs_.draft.estimate({1.0, 0.0});
  }
  // The average over a second may dip to 0.9; one step takes a second and more here.
  EXPECT_GE(costs_.target.estimate({4.0, 0.0}) / seconds, 0.83);

  pace_ = 0.5;  // They have been slowed down enough.
  EXPECT_EQ(plan({&good, nullptr, nullptr, nullptr})[0], 0U);
}

TEST_F(StepPlannerTest, GrantsWhatIsFixedWhateverItPromises) {
  const ChanceGovernor hopeless(0.01);
  EXPECT_EQ(plan({&hopeless}, {}, true).front(), 16U);
  EXPECT_EQ(plan({&hopeless, &hopeless}, {}, true), (std::vector<std::size_t>{16U, 16U}));
}

TEST_F(StepPlannerTest, CountsARowBesideAPrefillAsWhatItAddsToIt) {
  const ChanceGovernor good(0.8);
  const PassLoad prefill = PassLoad::of_rows(128, 0);
  // Alone, a token saved is a whole pass saved: worth a row of a long pass.
  EXPECT_GT(plan({&good}, prefill).front(), 0U);
  // Eight share a plain pass: a token saved is worth less than the row it takes.
  set_target({{1, 1.0}, {8, 1.05}, {17, 1.8}, {33, 12.0}, {257, 100.0}});
  const std::vector<const Governor*> eight(8, &good);
  const auto granted = plan(eight, prefill);
  EXPECT_EQ(*std::max_element(granted.begin(), granted.end()), 0U);
}

TEST_F(StepPlannerTest, TriesACostAgainThatWasMeasuredAtABadMoment) {
  for (const std::size_t rows : PassCost::kRows) {
    if (rows > 1) {
      costs_.target.calibrate(rows, static_cast<double>(rows), 0.9, now_);
    }
  }
  const ChanceGovernor good(0.9);
  std::size_t tried = 0;
  for (int i = 0; i < 10; ++i, now_ += std::chrono::milliseconds(101)) {
    tried += plan({&good}).front() > 0 ? 1 : 0;
  }
  EXPECT_GE(tried, 5U);
}

TEST_F(StepPlannerTest, WhoAlwaysDraftsStillLearnsWhatAPlainStepCosts) {
  const ChanceGovernor good(0.95);
  for (int i = 0; i < 20; ++i) {  // Time passes; only verification is measured.
    now_ += std::chrono::milliseconds(500);
    costs_.target.observe({17.0, 0.0}, 1.8, now_);
  }
  std::size_t plain = 0;
  for (int i = 0; i < 100; ++i, now_ += std::chrono::milliseconds(20)) {
    plain += plan({&good}).front() == 0 ? 1 : 0;
  }
  EXPECT_GE(plain, 1U);
  EXPECT_LE(plain, 3U);
}

TEST(Pace, IsTheAverageOverASecond) {
  Pace pace;
  for (int i = 0; i < 5000; ++i) {
    pace.add(0.0005, 0.001);
  }
  EXPECT_NEAR(pace.value(), 0.5, 0.01);
}

}  // namespace
}  // namespace spel::engine
