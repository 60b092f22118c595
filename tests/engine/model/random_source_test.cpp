#include "engine/document/random_source.h"

#include <cmath>
#include <gtest/gtest.h>

#include "engine/files/sha256.h"
#include "engine/files/tensor_values.h"
#include "model_fixtures.h"

namespace spel::engine {
namespace {

using testing::tiny_config;

std::string digest_of(const ModelSource& source) {
  Sha256 hash;
  for (const TensorSpec& tensor : tensor_layout(source.config()).in_file_order()) {
    const std::vector<float> values = source.read_values(tensor);
    hash.update(std::as_bytes(std::span(values)));
  }
  return hash.finish_hex();
}

TEST(RandomSource, GivesTheSameBitsForTheSameSeedEverywhere) {
  // A literal, so that a platform that computes other values is noticed.
  EXPECT_EQ(digest_of(*random_source(tiny_config(), 7)),
            "3db87b0b43afc42c349a0f5413ace13fb34acdcf0cd227d69bfd26d4409aabf1");
  EXPECT_NE(digest_of(*random_source(tiny_config(), 8)),
            digest_of(*random_source(tiny_config(), 7)));
}

TEST(RandomSource, IsBf16ExactAndFinite) {
  const auto source = random_source(tiny_config(), 3);
  for (const TensorSpec& tensor : tensor_layout(tiny_config()).in_file_order()) {
    const std::vector<float> values = source->read_values(tensor);
    EXPECT_TRUE(is_bf16_exact(values)) << tensor.name;
    for (const float value : values) {
      ASSERT_TRUE(std::isfinite(value));
    }
  }
}

TEST(RandomSource, TheDraftIsACopyOfItsLayers) {
  const auto source = random_source(tiny_config(), 3);
  const TensorLayout layout = tensor_layout(tiny_config());
  EXPECT_EQ(source->read_values(layout.draft[2].in[0].tensor),
            source->read_values(layout.target[3].in[0].tensor));
  EXPECT_NE(source->read_values(layout.target[2].in[0].tensor),
            source->read_values(layout.target[3].in[0].tensor));
}

TEST(RandomSource, ValidatesItsShape) {
  ModelConfig config = tiny_config();
  config.n_heads = 3;
  EXPECT_THROW((void)random_source(config, 1), Error);
}

}  // namespace
}  // namespace spel::engine
