#include "engine/sample/sampler.h"

#include <algorithm>
#include <cmath>
#include <gtest/gtest.h>
#include <limits>
#include <memory>
#include <optional>
#include <vector>

namespace spel::engine {
namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

TokenId choose(const SamplingParams& params, const std::vector<float>& logits,
               std::size_t position = 0) {
  Sampler sampler(logits.size());
  sampler.reset(params, {});
  return sampler.choose(logits, position);
}

SamplingParams at_temperature(float temperature) {
  SamplingParams params;
  params.temperature = temperature;
  return params;
}

// Pearson's statistic of 200,000 draws against exact probabilities.
double chi_square(const SamplingParams& base, const std::vector<float>& logits,
                  const std::vector<double>& probabilities) {
  constexpr std::size_t kDraws = 200000;
  Sampler sampler(logits.size());
  sampler.reset(base, {});
  std::vector<std::size_t> counts(logits.size());
  for (std::size_t i = 0; i < kDraws; ++i) {
    ++counts[static_cast<std::size_t>(sampler.choose(logits, i))];
  }
  double statistic = 0.0;
  for (std::size_t i = 0; i < logits.size(); ++i) {
    const double expected = probabilities[i] * static_cast<double>(kDraws);
    if (expected == 0.0) {
      EXPECT_EQ(counts[i], 0U) << "a filtered token was drawn";
      continue;
    }
    const double difference = static_cast<double>(counts[i]) - expected;
    statistic += difference * difference / expected;
  }
  return statistic;
}

// The value a chi-square with 3 degrees of freedom exceeds with probability 1e-3.
constexpr double kChiSquare3 = 16.27;

TEST(Sampler, TemperatureZeroTakesTheLargestLogit) {
  EXPECT_EQ(choose(at_temperature(0), {0.5F, 2.0F, 1.0F}), 1);
}

TEST(Sampler, TemperatureZeroTakesTheLowestIdOnATie) {
  EXPECT_EQ(choose(at_temperature(0), {1.0F, 7.0F, 7.0F, 7.0F}), 1);
}

TEST(Sampler, TinyTemperaturesAgreeWithArgmax) {
  for (const float temperature : {1e-4F, 1e-30F, std::numeric_limits<float>::min()}) {
    for (std::size_t position = 0; position < 50; ++position) {
      EXPECT_EQ(choose(at_temperature(temperature), {0.5F, 2.0F, 1.0F, -3.0F}, position), 1);
    }
  }
}

// z-lab/dflash#74
TEST(Sampler, DrawsFollowTheSoftmax) {
  const std::vector<float> logits = {0.0F, 1.0F, -1.0F, 0.5F};
  double total = 0.0;
  std::vector<double> probabilities;
  for (const float logit : logits) {
    probabilities.push_back(std::exp(static_cast<double>(logit)));
    total += probabilities.back();
  }
  for (double& p : probabilities) {
    p /= total;
  }
  EXPECT_LT(chi_square(at_temperature(1), logits, probabilities), kChiSquare3);
}

// mlx-node/mlx-node#11
TEST(Sampler, DrawsFollowTheFilteredSoftmax) {
  const std::vector<float> logits = {0.0F, 1.0F, -1.0F, 0.5F};
  SamplingParams params = at_temperature(0.7F);
  params.top_p = 0.6F;
  // At temperature 0.7 tokens 1 and 3 hold more than 0.6 together, token 1 alone less.
  const double one = std::exp(1.0 / 0.7);
  const double three = std::exp(0.5 / 0.7);
  EXPECT_LT(chi_square(params, logits, {0.0, one / (one + three), 0.0, three / (one + three)}),
            kChiSquare3);
}

TEST(Sampler, TopKKeepsTheMostProbable) {
  SamplingParams params = at_temperature(2);
  params.top_k = 2;
  for (std::size_t position = 0; position < 2000; ++position) {
    const TokenId token = choose(params, {0.0F, 1.0F, -1.0F, 0.5F}, position);
    EXPECT_TRUE(token == 1 || token == 3);
  }
}

TEST(Sampler, MinPDropsWhatIsFarBelowTheBest) {
  SamplingParams params = at_temperature(1);
  params.min_p = 0.5F;
  for (std::size_t position = 0; position < 2000; ++position) {
    // exp(-0.5) = 0.61 of the best stays, exp(-1) = 0.37 does not.
    const TokenId token = choose(params, {0.0F, 1.0F, -1.0F, 0.5F}, position);
    EXPECT_TRUE(token == 1 || token == 3);
  }
}

TEST(Sampler, TheSmallestNucleusIsTheArgmax) {
  SamplingParams params = at_temperature(1);
  params.top_p = 1e-6F;
  for (std::size_t position = 0; position < 200; ++position) {
    EXPECT_EQ(choose(params, {0.0F, 1.0F, 0.9F}, position), 1);
  }
}

TEST(Sampler, LogitBiasForcesAndForbids) {
  SamplingParams params = at_temperature(0);
  params.logit_bias = {{2, 100.0F}};
  EXPECT_EQ(choose(params, {5.0F, 6.0F, 0.0F}), 2);
  params.logit_bias = {{1, -100.0F}};
  EXPECT_EQ(choose(params, {5.0F, 6.0F, 0.0F}), 0);
}

TEST(Sampler, PenaltiesFollowTheHistoryAndForgetWhatIsPopped) {
  SamplingParams params = at_temperature(0);
  params.presence_penalty = 2.0F;
  const std::vector<float> logits = {1.0F, 2.0F};
  Sampler sampler(2);
  sampler.reset(params, {});
  EXPECT_EQ(sampler.choose(logits, 0), 1);
  sampler.push(1);
  EXPECT_EQ(sampler.choose(logits, 1), 0);
  sampler.pop(1);
  EXPECT_EQ(sampler.choose(logits, 1), 1);
}

TEST(Sampler, RepetitionPenaltyCountsThePromptToo) {
  SamplingParams params = at_temperature(0);
  params.repetition_penalty = 2.0F;
  const std::vector<TokenId> prompt = {1};
  Sampler sampler(2);
  sampler.reset(params, prompt);
  EXPECT_EQ(sampler.choose(std::vector<float>{1.5F, 2.0F}, 1), 0);
}

// The order of request.h. A penalty divides what is above 0 and multiplies what is below, so it
// matters whether the bias has been added by then.
TEST(Sampler, TheBiasComesBeforeThePenalties) {
  SamplingParams params = at_temperature(0);
  params.repetition_penalty = 2.0F;
  params.logit_bias = {{0, 4.0F}};
  const std::vector<TokenId> prompt = {0};
  Sampler sampler(2);
  sampler.reset(params, prompt);
  // (-1 + 4) / 2 = 1.5 is below 1.75; -1 * 2 + 4 would be 2.
  EXPECT_EQ(sampler.choose(std::vector<float>{-1.0F, 1.75F}, 1), 1);
  EXPECT_EQ(sampler.choose(std::vector<float>{-1.0F, 1.25F}, 1), 0);
}

TEST(Sampler, TheTemperatureComesAfterBiasAndPenaltiesAndBeforeTheFilters) {
  SamplingParams params = at_temperature(0.5F);
  params.min_p = 0.5F;
  params.logit_bias = {{1, -0.5F}};
  // A distance of 0.5 after the bias is 1 over the temperature: exp(-1) = 0.37 is dropped.
  for (std::size_t position = 0; position < 500; ++position) {
    EXPECT_EQ(choose(params, {1.0F, 1.0F}, position), 0);
  }
}

TEST(Sampler, NoEndIsChosenBeforeTheMinimumIsOut) {
  for (const float temperature : {0.0F, 1.0F}) {
    SamplingParams params = at_temperature(temperature);
    params.logit_bias = {{2, 100.0F}};
    const std::vector<float> logits = {0.0F, 1.0F, 50.0F, 60.0F};
    const std::vector<TokenId> ends = {2, 3};
    Sampler sampler(4);
    sampler.reset(params, {}, 2, ends);
    TokenId token = -1;
    for (std::size_t place = 0; place < 2; ++place) {
      token = sampler.choose(logits, place);
      EXPECT_TRUE(token == 0 || token == 1) << token;
      sampler.push(token);
    }
    EXPECT_EQ(sampler.choose(logits, 2), 2);
    // A proposal taken back does not count as out.
    sampler.pop(token);
    EXPECT_LT(sampler.choose(logits, 1), 2);
    sampler.reset(params, {});
    EXPECT_EQ(sampler.choose(logits, 0), 2) << "the next request has no minimum";
  }
}

TEST(Sampler, WithEveryTokenAnEndThereIsNoChoice) {
  const std::vector<TokenId> ends = {0, 1};
  Sampler sampler(2);
  sampler.reset(at_temperature(0), {}, 1, ends);
  EXPECT_EQ(sampler.choose(std::vector<float>{0.0F, 1.0F}, 0), -1);
}

TEST(TokenLogprobs, AreTheMostProbableFirstAndTheLowestIdOnATie) {
  std::vector<float> logits(128);
  for (std::size_t i = 0; i < logits.size(); ++i) {
    logits[i] = static_cast<float>((i * 37) % 32);
  }
  float logprob = 0.0F;
  TopLogprobs top;
  Chooser chooser(logits.size());
  chooser.logprobs(logits, 5, TopLogprobs::capacity(), &logprob, &top);
  ASSERT_EQ(top.size(), 20U);
  for (std::size_t i = 0; i + 1 < top.size(); ++i) {
    EXPECT_GE(top[i].logprob, top[i + 1].logprob);
    if (top[i].logprob == top[i + 1].logprob) {
      EXPECT_LT(top[i].token, top[i + 1].token);
    }
    EXPECT_EQ(logits[static_cast<std::size_t>(top[i].token)], 31.0F - static_cast<float>(i / 4))
        << "four tokens share each logit";
  }
  Chooser(3).logprobs({logits.data(), 3}, 0, 20, &logprob, &top);
  EXPECT_EQ(top.size(), 3U);
  chooser.logprobs(logits, 0, 0, &logprob, &top);
  EXPECT_EQ(top.size(), 0U);
}

TEST(Sampler, TheSeedDecidesAndNothingElse) {
  SamplingParams params = at_temperature(1);
  const std::vector<float> logits(64, 0.0F);
  std::size_t different = 0;
  for (std::size_t position = 0; position < 100; ++position) {
    params.seed = 7;
    const TokenId first = choose(params, logits, position);
    EXPECT_EQ(choose(params, logits, position), first);
    params.seed = 8;
    different += choose(params, logits, position) != first ? 1 : 0;
  }
  EXPECT_GT(different, 80U);
}

TEST(Sampler, NotANumberIsNeverChosen) {
  for (const float temperature : {0.0F, 1.0F}) {
    EXPECT_EQ(choose(at_temperature(temperature), {kNan, 0.0F, kNan}), 1);
    EXPECT_EQ(choose(at_temperature(temperature), {kNan, kNan}), -1);
  }
}

TEST(PositionNoise, DrawsStayInsideTheOpenInterval) {
  double low = 1.0;
  double high = 0.0;
  for (std::uint64_t i = 0; i < 100000; ++i) {
    const double u = PositionNoise(i, 3).uniform(i % 128);
    ASSERT_GT(u, 0.0);
    ASSERT_LT(u, 1.0);
    low = std::min(low, u);
    high = std::max(high, u);
  }
  EXPECT_LT(low, 1e-3);
  EXPECT_GT(high, 1.0 - 1e-3);
}

TEST(PositionNoise, TheBoundIsAboveTheNoiseAndNotFar) {
  double furthest = 0.0;
  for (std::uint64_t i = 0; i < 200000; ++i) {
    const PositionNoise noise(7, i);
    const double gumbel = noise.gumbel(i % 1000);
    ASSERT_GE(noise.at_most(i % 1000), gumbel);
    ASSERT_LE(noise.at_most(i % 1000), PositionNoise::kMost);
    if (gumbel > 4.0) {
      // 1 - u <= -log u by 1 % here, and the bits of a double are within 0.0861 of its logarithm.
      furthest = std::max(furthest, noise.at_most(i % 1000) - gumbel);
    }
  }
  EXPECT_GT(furthest, 0.0);
  EXPECT_LT(furthest, 0.08);
}

TEST(TokenMask, ForbiddenIdsAreNeitherChosenNorCounted) {
  const auto mask = std::make_shared<TokenMask>(6);
  for (const std::size_t id : {1U, 5U, 2U, 5U}) {
    mask->forbid(id);
  }
  EXPECT_EQ(mask->end(), 5U);
  EXPECT_TRUE(mask->has_holes());
  const std::vector<float> logits = {0.0F, 90.0F, 80.0F, 1.0F, -1.0F, 99.0F};
  const auto chooser = std::make_shared<Chooser>(6, kernels::Kernels::select(), mask);
  Sampler sampler(chooser);
  SamplingParams params = at_temperature(0);
  params.logit_bias = {{5, 100.0F}};
  sampler.reset(params, {});
  EXPECT_EQ(sampler.choose(logits, 0), 3);
  params = at_temperature(1);
  params.top_k = 2;
  sampler.reset(params, {});
  std::size_t lesser = 0;
  for (std::size_t position = 0; position < 1000; ++position) {
    const TokenId token = sampler.choose(logits, position);
    ASSERT_TRUE(token == 0 || token == 3) << token;
    lesser += token == 0 ? 1 : 0;
  }
  EXPECT_NEAR(static_cast<double>(lesser), 1000.0 / (1.0 + std::exp(1.0)), 50.0);
}

TEST(TokenMask, ForbiddenIdsHaveNoProbability) {
  const auto mask = std::make_shared<TokenMask>(4);
  mask->forbid(3);
  mask->forbid(1);
  Chooser chooser(4, kernels::Kernels::select(), mask);
  const std::vector<float> logits = {0.0F, 50.0F, 0.0F, kNan};
  float logprob = 0.0F;
  TopLogprobs top;
  chooser.logprobs(logits, 2, 4, &logprob, &top);
  EXPECT_NEAR(logprob, -std::log(2.0), 1e-6);
  ASSERT_EQ(top.size(), 2U);
  EXPECT_EQ(top[0].token, 0);
  EXPECT_EQ(top[1].token, 2);
  chooser.logprobs(logits, 1, 0, &logprob, &top);
  EXPECT_EQ(logprob, -std::numeric_limits<float>::infinity());
}

TEST(TokenMask, WithEveryIdForbiddenThereIsNoChoice) {
  const auto mask = std::make_shared<TokenMask>(3);
  for (const std::size_t id : {0U, 1U, 2U}) {
    mask->forbid(id);
  }
  EXPECT_EQ(mask->end(), 0U);
  Chooser chooser(3, kernels::Kernels::select(), mask);
  for (const float temperature : {0.0F, 1.0F}) {
    EXPECT_EQ(chooser.choose(std::vector<float>(3), {}, at_temperature(temperature), 0), -1);
  }
}

TEST(Sampler, ProposalsOfARoundMayRepeatAndAreForgottenInOrder) {
  SamplingParams params = at_temperature(0);
  params.frequency_penalty = 1.0F;
  const std::vector<float> logits = {3.0F, 2.5F, 2.25F, 0.0F};
  Sampler sampler(logits.size());
  sampler.reset(params, {});
  std::vector<TokenId> output;
  for (std::size_t round = 0; round < 100; ++round) {
    std::vector<TokenId> proposals;
    for (std::size_t i = 0; i < 6; ++i) {
      proposals.push_back(sampler.choose(logits, output.size() + i));
      sampler.push(proposals.back());
    }
    for (std::size_t i = proposals.size(); i > 0; --i) {
      sampler.pop(proposals[i - 1]);
    }
    ASSERT_EQ(sampler.choose(logits, output.size()), proposals.front());
    output.push_back(proposals.front());
    sampler.push(output.back());
  }
  const std::vector<TokenId> begin = {0, 1, 2, 0, 1, 2};
  EXPECT_EQ(std::vector<TokenId>(output.begin(), output.begin() + 6), begin);
}

// --- Thoughts with a budget: 7 begins one, 8 ends one, 5 8 6 closes it --------------------------

SamplingParams thinking(std::size_t tokens_max, bool begun) {
  SamplingParams params = at_temperature(0);
  params.thinking = ThinkingBudget{.tokens_max = tokens_max,
                                   .begin = begun ? std::nullopt : std::optional<TokenId>(7),
                                   .end = 8,
                                   .close = {5, 8, 6}};
  return params;
}

/// What comes out where the model would say `wanted` token by token.
std::vector<TokenId> output_of(Sampler& sampler, const std::vector<TokenId>& wanted) {
  std::vector<TokenId> output;
  for (const TokenId token : wanted) {
    std::vector<float> logits(10);
    logits[static_cast<std::size_t>(token)] = 1.0F;
    output.push_back(sampler.choose(logits, output.size()));
    sampler.push(output.back());
  }
  return output;
}

TEST(ThinkingBudget, AThoughtThatHasSpentItsBudgetIsClosed) {
  Sampler sampler(10);
  sampler.reset(thinking(3, true), {});
  EXPECT_EQ(output_of(sampler, {1, 1, 1, 1, 1, 1, 2, 2}),
            (std::vector<TokenId>{1, 1, 1, 5, 8, 6, 2, 2}));
  EXPECT_EQ(sampler.forced(), std::nullopt);
  sampler.reset(at_temperature(0), {});
  EXPECT_EQ(output_of(sampler, {1, 1, 1, 1, 1}), (std::vector<TokenId>{1, 1, 1, 1, 1}))
      << "the next request has no budget";
}

TEST(ThinkingBudget, AThoughtThatEndsWithinItsBudgetIsLeftAlone) {
  Sampler sampler(10);
  sampler.reset(thinking(3, true), {});
  EXPECT_EQ(output_of(sampler, {1, 1, 8, 2, 2, 2}), (std::vector<TokenId>{1, 1, 8, 2, 2, 2}));
}

TEST(ThinkingBudget, NothingIsThoughtWithABudgetOfNothing) {
  Sampler sampler(10);
  sampler.reset(thinking(0, true), {});
  EXPECT_EQ(output_of(sampler, {1, 1, 1, 2}), (std::vector<TokenId>{5, 8, 6, 2}));
}

TEST(ThinkingBudget, AThoughtThatTheModelBeginsIsCountedFromThere) {
  Sampler sampler(10);
  sampler.reset(thinking(2, false), {});
  EXPECT_EQ(output_of(sampler, {1, 1, 1, 7, 1, 1, 1, 1, 1, 2}),
            (std::vector<TokenId>{1, 1, 1, 7, 1, 1, 5, 8, 6, 2}));
}

TEST(ThinkingBudget, ForcedTokensNeedNoLogits) {
  Sampler sampler(10);
  sampler.reset(thinking(0, true), {});
  EXPECT_EQ(sampler.choose(std::vector<float>(10, kNan), 0), 5);
}

// Rounds of proposals, of which some are taken back wherever in the thought they fall: begin, end
// and close are where they are without.
TEST(ThinkingBudget, ProposalsTakenBackChangeNothing) {
  for (const bool begun : {false, true}) {
    for (std::size_t budget = 0; budget < 8; ++budget) {
      for (std::size_t end_at = 1; end_at < 12; ++end_at) {
        std::vector<TokenId> wanted(16, 1);
        if (!begun) {
          wanted[0] = 7;
        }
        wanted[end_at] = 8;
        Sampler plain(10);
        plain.reset(thinking(budget, begun), {});
        const auto expected = output_of(plain, wanted);
        Sampler sampler(10);
        sampler.reset(thinking(budget, begun), {});
        std::vector<TokenId> output;
        while (output.size() < wanted.size()) {
          std::vector<TokenId> proposals;
          while (proposals.size() < 5 && output.size() + proposals.size() < wanted.size()) {
            std::vector<float> logits(10);
            logits[static_cast<std::size_t>(wanted[output.size() + proposals.size()])] = 1.0F;
            proposals.push_back(sampler.choose(logits, 0));
            sampler.push(proposals.back());
          }
          for (std::size_t i = proposals.size(); i > 0; --i) {
            sampler.pop(proposals[i - 1]);
          }
          output.push_back(proposals.front());
          sampler.push(output.back());
        }
        EXPECT_EQ(output, expected) << budget << ", " << end_at;
      }
    }
  }
}

TEST(TokenLogprobs, AreTheLogSoftmaxMostProbableFirst) {
  const std::vector<float> logits = {0.0F, 1.0F, -1.0F, 1.0F};
  const double total = std::log(std::exp(0.0) + 2 * std::exp(1.0) + std::exp(-1.0));
  float logprob = 0.0F;
  TopLogprobs top;
  Chooser(logits.size()).logprobs(logits, 2, 3, &logprob, &top);
  EXPECT_NEAR(logprob, -1.0 - total, 1e-6);
  ASSERT_EQ(top.size(), 3U);
  EXPECT_EQ(top[0].token, 1);
  EXPECT_EQ(top[1].token, 3);
  EXPECT_EQ(top[2].token, 0);
  EXPECT_NEAR(top[0].logprob, 1.0 - total, 1e-6);
}

}  // namespace
}  // namespace spel::engine
