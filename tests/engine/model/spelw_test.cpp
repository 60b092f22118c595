#include "engine/document/spelw.h"

#include <cmath>
#include <cstring>
#include <gtest/gtest.h>
#include <limits>

#include "engine/document/model_directory.h"
#include "engine/document/random_source.h"
#include "model_fixtures.h"

namespace spel::engine {
namespace {

using testing::error_of;
using testing::read_bytes;
using testing::ScratchFolder;
using testing::tiny_config;
using testing::tiny_golden;

class Spelw : public ::testing::Test {
 protected:
  /// The bytes of a tiny file, with a footer or without.
  std::vector<std::byte> tiny_file(bool with_golden) {
    const ModelConfig config = tiny_config();
    std::optional<GoldenLogits> golden;
    if (with_golden) {
      golden = tiny_golden(config);
    }
    write_spelw(*random_source(config, 7), golden, folder_.path() / "tiny.spelw");
    return read_bytes(folder_.path() / "tiny.spelw");
  }

  static std::string problem_in(std::span<const std::byte> bytes) {
    return error_of([&] { (void)parse_spelw(bytes, "tiny.spelw"); });
  }

  ScratchFolder folder_;
};

TEST_F(Spelw, HoldsTheTensorsInTheOrderOfTheFormat) {
  const std::vector<std::byte> bytes = tiny_file(true);
  EXPECT_EQ(std::memcmp(bytes.data(), "SPELW001", 8), 0);
  const auto original = random_source(tiny_config(), 7);
  std::size_t at = 64;
  for (const TensorSpec& tensor : tensor_layout(tiny_config()).in_file_order()) {
    const std::vector<float> values = original->read_values(tensor);
    ASSERT_EQ(std::memcmp(bytes.data() + at, values.data(), values.size() * sizeof(float)), 0)
        << describe(tensor);
    at += values.size() * sizeof(float);
  }
  EXPECT_EQ(std::memcmp(bytes.data() + at, "SPELV001", 8), 0);
  EXPECT_EQ(bytes.size(), spelw_file_bytes(tiny_config(), true));
}

TEST_F(Spelw, RoundTripsEveryBit) {
  for (const bool with_golden : {false, true}) {
    const std::vector<std::byte> bytes = tiny_file(with_golden);
    const auto source = parse_spelw(bytes, "tiny.spelw");
    EXPECT_EQ(source->golden().has_value(), with_golden);
    EXPECT_EQ(source->file_bytes(), bytes.size());
    write_spelw(*source, std::nullopt, folder_.path() / "again.spelw");
    EXPECT_EQ(read_bytes(folder_.path() / "again.spelw"), bytes);
  }
}

TEST_F(Spelw, EveryTruncationIsRefusedWithBothSizes) {
  const std::vector<std::byte> bytes = tiny_file(true);
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    const std::string message = problem_in(std::span(bytes).first(size));
    ASSERT_NE(message.find("found " + std::to_string(size)), std::string::npos) << message;
    ASSERT_NE(message.find("bytes"), std::string::npos) << message;
  }
}

TEST_F(Spelw, TrailingBytesAreRefused) {
  std::vector<std::byte> bytes = tiny_file(false);
  for (int extra = 1; extra < 20; ++extra) {
    bytes.push_back(std::byte{0});
    EXPECT_NE(problem_in(bytes).find("bytes follow"), std::string::npos);
  }
}

TEST_F(Spelw, EveryFlippedHeaderBitIsRefusedOrLeavesTheSizesAgreeing) {
  const std::vector<std::byte> good = tiny_file(true);
  for (std::size_t bit = 0; bit < 64 * 8; ++bit) {
    std::vector<std::byte> bytes = good;
    bytes[bit / 8] ^= static_cast<std::byte>(1U << (bit % 8));
    try {
      const auto source = parse_spelw(bytes, "tiny.spelw");
      ModelConfig config = source->config();
      EXPECT_EQ(spelw_file_bytes(config, true), bytes.size()) << "bit " << bit;
      // Only what no tensor depends on may have changed: the context, or which of two layers of
      // the same kind a draft layer came from.
      const bool context_changed = config.max_seq != tiny_config().max_seq;
      const bool draft_map_changed = config.draft_layers != tiny_config().draft_layers;
      const bool period_changed = config.attn_period != tiny_config().attn_period;
      EXPECT_TRUE(context_changed || draft_map_changed || period_changed) << "bit " << bit;
      config.max_seq = tiny_config().max_seq;
      config.draft_layers = tiny_config().draft_layers;
      config.attn_period = tiny_config().attn_period;
      EXPECT_EQ(config.target_parameters(), tiny_config().target_parameters()) << "bit " << bit;
      EXPECT_EQ(config.d_model, tiny_config().d_model) << "bit " << bit;
      EXPECT_EQ(config.n_heads, tiny_config().n_heads) << "bit " << bit;
    } catch (const Error& error) {
      EXPECT_NE(std::string(error.what()).find("tiny.spelw"), std::string::npos) << error.what();
    }
  }
}

// ggml-org/llama.cpp#26651
TEST_F(Spelw, ValuesThatAreNotFiniteAreRefusedByTensorName) {
  const std::vector<std::byte> good = tiny_file(true);
  std::size_t at = 64;
  for (const TensorSpec& tensor : tensor_layout(tiny_config()).in_file_order()) {
    for (const float bad : {std::numeric_limits<float>::quiet_NaN(), INFINITY, -INFINITY}) {
      for (const std::size_t index : {std::size_t{0}, tensor.values() - 1}) {
        std::vector<std::byte> bytes = good;
        std::memcpy(bytes.data() + at + index * sizeof(float), &bad, sizeof(bad));
        const std::string message = problem_in(bytes);
        EXPECT_NE(message.find(describe(tensor) + " holds"), std::string::npos) << message;
        EXPECT_NE(message.find("value " + std::to_string(index)), std::string::npos) << message;
      }
    }
    at += tensor.values() * sizeof(float);
  }
}

TEST_F(Spelw, ABadFooterIsRefused) {
  const std::vector<std::byte> good = tiny_file(true);
  const std::size_t footer = spelw_file_bytes(tiny_config(), false);
  const auto spoiled = [&](std::size_t offset, std::uint32_t word) {
    std::vector<std::byte> bytes = good;
    std::memcpy(bytes.data() + footer + offset, &word, sizeof(word));
    return problem_in(bytes);
  };
  EXPECT_NE(spoiled(0, 0).find("SPELV001"), std::string::npos);
  EXPECT_NE(spoiled(8, 17).find("17 golden tokens"), std::string::npos);
  EXPECT_NE(spoiled(12, 5).find("golden token 0 is 5"), std::string::npos);
  EXPECT_NE(spoiled(12, 0xFFFFFFFFU).find("golden token 0 is -1"), std::string::npos);
  EXPECT_NE(spoiled(12 + 64, 0x7FC00000U).find("golden target logits"), std::string::npos);
}

TEST_F(Spelw, WhatTheFormCannotHoldIsRefusedAndLeavesNoFile) {
  for (void (*change)(ModelConfig&) : {
           +[](ModelConfig& c) { c.draft_layers = {0, 1, 3}; },
           +[](ModelConfig& c) { c.conv_taps = 4; },
           +[](ModelConfig& c) { c.attn_logit_scale = 8; },
           +[](ModelConfig& c) { c.read_order = ReadOrder::kAfterDecay; },
           +[](ModelConfig& c) { c.conv_activation = ConvActivation::kSilu; },
           +[](ModelConfig& c) { c.eos_token_id = 1; },
       }) {
    ModelConfig config = tiny_config();
    change(config);
    const auto source = random_source(config, 1);
    EXPECT_NE(error_of([&] {
                write_spelw(*source, std::nullopt, folder_.path() / "no");
              }).find("cannot hold"),
              std::string::npos);
  }
  EXPECT_EQ(folder_.entries(), 0U);
}

TEST_F(Spelw, AFailedWriteLeavesTheOldFileAlone) {
  const std::vector<std::byte> before = tiny_file(false);
  ModelConfig config = tiny_config();
  config.conv_taps = 4;
  EXPECT_THROW(write_spelw(*random_source(config, 1), std::nullopt, folder_.path() / "tiny.spelw"),
               Error);
  EXPECT_EQ(read_bytes(folder_.path() / "tiny.spelw"), before);
  EXPECT_EQ(folder_.entries(), 1U);
}

}  // namespace
}  // namespace spel::engine
