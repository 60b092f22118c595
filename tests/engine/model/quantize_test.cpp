#include "engine/quantise/quantize.h"

#include <cmath>
#include <gtest/gtest.h>
#include <limits>
#include <vector>

#include "model_fixtures.h"

namespace spel::engine {
namespace {

using testing::TestRandom;

std::vector<float> random_weights(std::size_t count, std::uint64_t seed, float deviation = 0.05F) {
  TestRandom random(seed);
  std::vector<float> weights(count);
  for (float& w : weights) {
    w = deviation * random.normal();
  }
  return weights;
}

TEST(QuantizeInt8, RoundsHalfToEvenOfTheRowMaximumOver127) {
  const std::vector<float> row = {127.0F, 0.5F, 1.5F, 2.5F, -0.5F, -1.5F, -126.5F, 0.0F};
  const Int8Rows rows = quantize_int8(row, 1, row.size());
  EXPECT_EQ(rows.scales, std::vector<float>{1.0F});
  EXPECT_EQ(rows.values, (std::vector<std::int8_t>{127, 0, 2, 2, 0, -2, -126, 0}));
}

TEST(QuantizeInt8, GivesARowOfZerosTheSmallestScale) {
  const Int8Rows rows = quantize_int8(std::vector<float>(8, 0.0F), 2, 4);
  EXPECT_EQ(rows.values, std::vector<std::int8_t>(8, 0));
  EXPECT_EQ(rows.scales, std::vector<float>(2, 1e-8F / 127.0F));
}

TEST(QuantizeInt8, ItsOwnLatentsQuantiseBackToTheSameBits) {
  constexpr std::size_t kRows = 20'000;
  constexpr std::size_t kCols = 8;
  const std::vector<float> weights = random_weights(kRows * kCols, 1);
  const Int8Rows rows = quantize_int8(weights, kRows, kCols);
  const Int8Rows again = quantize_int8(dequantize_int8(rows, kCols), kRows, kCols);
  EXPECT_EQ(again.values, rows.values);
  EXPECT_EQ(again.scales, rows.scales);
}

TEST(QuantizeTernary, RefinesTheScaleThreeTimes) {
  // mean 1.25 -> above 0.625: {1, 4}, 2.5 -> above 1.25: {4}, 4 -> above 2: {4}, 4.
  const std::vector<float> row = {1.0F, -4.0F, 0.0F, 0.0F};
  const TernaryRows rows = quantize_ternary(row, 1, 4);
  EXPECT_EQ(rows.scales, std::vector<float>{4.0F});
  EXPECT_EQ(rows.packed, std::vector<std::uint8_t>{0b00001100});
}

TEST(QuantizeTernary, PacksFourCodesAByteLowBitsFirst) {
  const std::vector<float> row = {1, -1, 0, 1, -1, -1, 1, 0};
  const TernaryRows rows = quantize_ternary(row, 1, 8);
  EXPECT_EQ(rows.scales, std::vector<float>{1.0F});
  EXPECT_EQ(rows.packed, (std::vector<std::uint8_t>{0b01001101, 0b00011111}));
}

TEST(QuantizeTernary, GivesARowOfZerosScaleZero) {
  const TernaryRows rows = quantize_ternary(std::vector<float>(4, -0.0F), 1, 4);
  EXPECT_EQ(rows.scales, std::vector<float>{0.0F});
  EXPECT_EQ(rows.packed, std::vector<std::uint8_t>{0});
}

TEST(QuantizeTernary, ItsOwnLatentsQuantiseBackToTheSameBits) {
  constexpr std::size_t kRows = 2'000;
  for (const std::size_t cols : {4U, 12U, 384U}) {
    const std::vector<float> weights = random_weights(kRows * cols, cols);
    const TernaryRows rows = quantize_ternary(weights, kRows, cols);
    const TernaryRows again = quantize_ternary(dequantize_ternary(rows, cols), kRows, cols);
    EXPECT_EQ(again.packed, rows.packed);
    EXPECT_EQ(again.scales, rows.scales);
  }
}

TEST(QuantizeTernary, ScalesFarFromOneStayFixedPoints) {
  for (const float scale : {1e-37F, 3.3e-12F, 0.1F, 7e20F}) {
    const TernaryRows rows = {{0b01001101, 0b00110111}, {scale}};
    const TernaryRows again = quantize_ternary(dequantize_ternary(rows, 8), 1, 8);
    EXPECT_EQ(again.packed, rows.packed) << scale;
    EXPECT_EQ(again.scales, rows.scales) << scale;
  }
}

TEST(DequantizeTernary, ReadsCodeTwoAsZero) {
  const std::vector<float> row = dequantize_ternary({{0b11100100}, {0.5F}}, 4);
  EXPECT_EQ(row, (std::vector<float>{0.0F, 0.5F, 0.0F, -0.5F}));
}

}  // namespace
}  // namespace spel::engine
