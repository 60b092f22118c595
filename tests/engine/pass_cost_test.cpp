#include "engine/speculate/pass_cost.h"

#include <chrono>
#include <gtest/gtest.h>
#include <random>

#include "engine/speculate/cost_model.h"

namespace spel::engine {
namespace {

using std::chrono::milliseconds;

/// A machine whose passes take base * (1 + rows / 20), times how busy it is.
class Machine {
 public:
  explicit Machine(double busy = 1.0) : busy_(busy) {}
  void set_busy(double busy) { busy_ = busy; }
  [[nodiscard]] double seconds(double rows, double context = 0.0) const {
    return 0.002 * busy_ * (1.0 + rows / 20.0 + context / 10000.0);
  }
  /// The same, as a clock would tell it: some noise, and now and then the machine is elsewhere.
  [[nodiscard]] double measured(double rows, double context = 0.0) {
    const double noise = std::lognormal_distribution(0.0, 0.08)(random_);
    const double elsewhere = std::bernoulli_distribution(0.02)(random_) ? 0.004 : 0.0;
    return seconds(rows, context) * noise + elsewhere;
  }

 private:
  double busy_;
  std::mt19937 random_{7};
};

class PassCostTest : public ::testing::Test {
 protected:
  void run(double rows, std::size_t passes, double context = 0.0) {
    for (std::size_t i = 0; i < passes; ++i) {
      const double seconds = machine_.measured(rows, context);
      now_ += std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
      cost_.observe({rows, context}, seconds, now_);
    }
  }
  void calibrate(double factor, double spread) {
    for (const std::size_t rows : PassCost::kRows) {
      cost_.calibrate(rows, factor * machine_.seconds(static_cast<double>(rows)), spread, now_);
    }
  }
  void expect_true(double rows, double tolerance, double context = 0.0) const {
    const double truth = machine_.seconds(rows, context);
    EXPECT_NEAR(cost_.estimate({rows, context}), truth, tolerance * truth) << rows;
  }

  Machine machine_;
  PassCost cost_;
  Clock::time_point now_ = Clock::time_point{} + std::chrono::hours(1);
};

TEST_F(PassCostTest, KnowsNothingAtFirst) {
  EXPECT_FALSE(cost_.known());
  EXPECT_EQ(cost_.estimate({1.0, 0.0}), 0.0);
}

TEST_F(PassCostTest, ReadsBackWhatWasCalibrated) {
  calibrate(1.0, 0.0);
  for (const double rows : {1.0, 3.0, 5.0, 9.0, 17.0, 65.0, 257.0}) {
    expect_true(rows, 1e-9);
  }
  expect_true(11.0, 0.01);  // Between two points.
}

TEST_F(PassCostTest, OneLatePassMovesTheEstimateOnlyALittle) {
  calibrate(1.0, 0.0);
  run(1.0, 20);
  cost_.observe({1.0, 0.0}, 1000.0, now_);
  expect_true(1.0, 0.25);
}

TEST_F(PassCostTest, OneRowCountKeepsTheOthersCurrent) {
  calibrate(1.0, 0.0);
  machine_.set_busy(3.0);
  run(1.0, 100);
  expect_true(1.0, 0.1);
  expect_true(5.0, 0.25);
  expect_true(17.0, 0.25);
}

TEST_F(PassCostTest, APointMeasuredAtABadMomentIsGoneAfterAFewPasses) {
  calibrate(1.0, 0.0);
  cost_.calibrate(5, 8.0 * machine_.seconds(5), 1.0, now_);
  run(1.0, 20);
  run(5.0, 4);
  expect_true(5.0, 0.25);
  expect_true(1.0, 0.25);
}

TEST_F(PassCostTest, AWholeCalibrationUnderLoadIsGoneWithinASecondOfTraffic) {
  std::mt19937 random(3);
  for (const std::size_t rows : PassCost::kRows) {
    const double factor = std::uniform_real_distribution(1.0, 8.0)(random);
    cost_.calibrate(rows, factor * machine_.seconds(static_cast<double>(rows)), 0.8, now_);
  }
  const Clock::time_point begin = now_;
  while (now_ - begin < milliseconds(900)) {
    run(1.0, 2);
    run(3.0, 1);
    run(5.0, 3);
  }
  for (const double rows : {1.0, 3.0, 5.0}) {
    expect_true(rows, 0.15);
  }
}

TEST_F(PassCostTest, NeverFallsWithTheRowsNorRisesFasterThanThem) {
  std::mt19937 random(11);
  for (int i = 0; i < 300; ++i) {
    const auto rows = static_cast<double>(std::uniform_int_distribution(1, 80)(random));
    cost_.observe({rows, 0.0}, std::lognormal_distribution(-6.0, 1.5)(random), now_);
    now_ += milliseconds(3);
    const double one = cost_.estimate({1.0, 0.0});
    double before = one;
    for (double m = 2.0; m <= 300.0; m += 1.0) {
      const double seconds = cost_.estimate({m, 0.0});
      ASSERT_GE(seconds, before * (1.0 - 1e-9)) << m;
      ASSERT_LE(seconds, m * one * (1.0 + 1e-9)) << m;
      before = seconds;
    }
  }
}

TEST_F(PassCostTest, LearnsWhatContextCosts) {
  calibrate(1.0, 0.0);
  for (int i = 0; i < 40; ++i) {
    run(1.0, 5, 100.0);
    run(1.0, 5, 3000.0);
    run(5.0, 5, 5.0 * 3000.0);
  }
  expect_true(1.0, 0.1, 3000.0);
  expect_true(1.0, 0.1, 100.0);
  expect_true(5.0, 0.15, 5.0 * 3000.0);
}

TEST_F(PassCostTest, NamesTheRowCountMeasuredLongestAgo) {
  calibrate(1.0, 0.0);
  EXPECT_EQ(cost_.stalest(17, now_), std::nullopt);
  cost_.calibrate(9, 1.0, 0.9, now_);  // Measured, but not to be relied on.
  EXPECT_EQ(cost_.stalest(17, now_), 9U);
  EXPECT_EQ(cost_.stalest(5, now_), std::nullopt);
  now_ += std::chrono::seconds(30);
  run(1.0, 1);
  run(9.0, 1);
  EXPECT_EQ(cost_.stalest(17, now_ - std::chrono::seconds(20)), 2U);
}

TEST(CostModel, RatiosAreNotShownBeforeTheyAreMeasured) {
  CostModel costs;
  const Clock::time_point now = Clock::time_point{} + std::chrono::hours(1);
  EXPECT_EQ(costs.v(4, 0), 0.0);
  EXPECT_EQ(costs.ar_seconds(0), 0.0);
  for (const std::size_t rows : {std::size_t{1}, std::size_t{5}}) {
    costs.target.calibrate(rows, 1.0 + 0.1 * static_cast<double>(rows), 0.9, now);
  }
  EXPECT_EQ(costs.v(4, 0), 0.0);
  for (const std::size_t rows : {std::size_t{1}, std::size_t{5}}) {
    costs.target.calibrate(rows, 1.0 + 0.1 * static_cast<double>(rows), 0.01, now);
  }
  EXPECT_NEAR(costs.v(4, 0), 1.5 / 1.1, 0.05);
  EXPECT_EQ(costs.c(0), 0.0);
}

TEST(CostModel, VerificationIsNeverCheaperThanOneToken) {
  CostModel costs;
  const Clock::time_point now = Clock::time_point{} + std::chrono::hours(1);
  costs.target.calibrate(1, 2.0, 0.0, now);
  costs.target.calibrate(5, 1.0, 0.0, now);
  EXPECT_GE(costs.v(4, 0), 1.0);
}

TEST(CostModel, ProjectsTheDocumentsSpeedup) {
  EXPECT_NEAR(projected_speedup(0.75, 16, 0.12, 2.7), 13.0 / (17 * 0.12 + 2.7), 1e-12);
}

}  // namespace
}  // namespace spel::engine
