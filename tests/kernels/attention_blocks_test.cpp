#include <gtest/gtest.h>
#include <limits>

#include "kernels/scalar_math.h"
#include "tests/kernels/attention_cache.h"

namespace spel::kernels {
namespace {

/// As the models have it: logits near 1, whatever the width.
float scale_for(std::size_t dim) { return 1.0F / std::sqrt(static_cast<float>(dim)); }

std::size_t blocks_of(std::size_t positions) {
  return (positions + kAttentionBlock - 1) / kAttentionBlock;
}

/// [queries][dim], the queries `at_once` to a call.
std::vector<float> attend_in_blocks(const Kernels& kernels, const AttentionCache& cache,
                                    const std::vector<float>& q, std::size_t queries,
                                    std::size_t at_once) {
  const std::size_t dim = cache.dim;
  const std::size_t part = dim + 2;
  const std::size_t blocks = blocks_of(cache.positions);
  std::vector<float> parts(queries * blocks * part), out(queries * dim);
  for (std::size_t b = 0; b < blocks; ++b) {
    const std::size_t from = b * kAttentionBlock;
    const AttentionBlock block{.keys = cache.keys.data() + from * dim,
                               .values = cache.values.data() + from * dim,
                               .positions = std::min(kAttentionBlock, cache.positions - from),
                               .head_dim = dim,
                               .logit_scale = scale_for(dim)};
    for (std::size_t i = 0; i < queries; i += at_once) {
      kernels.attend_block(block, q.data() + i * dim, dim, std::min(at_once, queries - i),
                           parts.data() + (i * blocks + b) * part, blocks * part);
    }
  }
  for (std::size_t i = 0; i < queries; ++i) {
    kernels.merge_attention(parts.data() + i * blocks * part, part, blocks, dim,
                            out.data() + i * dim);
  }
  return out;
}

/// One query's part of one block, operation by operation as NUMERICS.md states it.
struct Part {
  Part(const AttentionCache& cache, const float* q, std::size_t from)
      : values(cache.dim), max(-std::numeric_limits<float>::infinity()) {
    const std::size_t positions = std::min(kAttentionBlock, cache.positions - from);
    std::vector<float> p(positions);
    for (std::size_t j = 0; j < positions; ++j) {
      float chain = 0.0F;
      for (std::size_t d = 0; d < cache.dim; ++d) {
        chain = std::fma(q[d], cache.rows[(from + j) * cache.dim + d], chain);
      }
      p[j] = scale_for(cache.dim) * chain;
      max = std::max(max, p[j]);
    }
    for (float& logit : p) {
      logit = exp_f32(logit - max);
    }
    sum = lane_sum(positions, [&](float lane, std::size_t j) { return lane + p[j]; });
    for (std::size_t j = 0; j < positions; ++j) {
      for (std::size_t d = 0; d < cache.dim; ++d) {
        values[d] = std::fma(p[j], cache.values[(from + j) * cache.dim + d], values[d]);
      }
    }
  }

  std::vector<float> values;
  float sum;
  float max;
};

std::vector<float> merged(const std::vector<Part>& parts) {
  float top = parts.front().max;
  for (const Part& part : parts) {
    top = std::max(top, part.max);
  }
  float sum = 0.0F;
  std::vector<float> out(parts.front().values.size());
  for (const Part& part : parts) {
    const float weight = exp_f32(part.max - top);
    sum = std::fma(weight, part.sum, sum);
    for (std::size_t d = 0; d < out.size(); ++d) {
      out[d] = std::fma(weight, part.values[d], out[d]);
    }
  }
  for (float& value : out) {
    value *= 1.0F / sum;
  }
  return out;
}

TEST(AttendBlocks, EverySetGivesTheDocumentedOrder) {
  Random random(40);
  SCOPED_TRACE(random.trace());
  for (const std::size_t dim : {1U, 16U, 33U, 128U}) {
    for (const std::size_t positions : {1U, 16U, 31U, 256U, 260U, 600U}) {
      const AttentionCache cache(random, positions, dim);
      const auto q = random.normals(dim);
      std::vector<Part> parts;
      for (std::size_t from = 0; from < positions; from += kAttentionBlock) {
        parts.emplace_back(cache, q.data(), from);
      }
      const std::vector<float> expected = merged(parts);
      for (const Kernels& kernels : KernelRegistry::attainable()) {
        EXPECT_TRUE(same_bytes(expected, attend_in_blocks(kernels, cache, q, 1, 1)))
            << kernels.variant() << ", " << positions << " x " << dim;
      }
    }
  }
}

TEST(AttendBlocks, AreTheSoftmaxWeightedMeanOfTheValues) {
  Random random(41);
  SCOPED_TRACE(random.trace());
  for (const std::size_t dim : {16U, 33U, 256U}) {
    // One block, one and a bit, up to five.
    for (const std::size_t positions : {1U, 17U, 256U, 257U, 700U, 1024U, 1100U}) {
      const AttentionCache cache(random, positions, dim);
      for (std::size_t queries = 1; queries <= 8; ++queries) {
        const auto q = random.normals(queries * dim);
        const auto found = attend_in_blocks(Kernels::select(), cache, q, queries, queries);
        for (std::size_t i = 0; i < queries; ++i) {
          const auto expected = cache.attended(q.data() + i * dim, scale_for(dim));
          for (std::size_t d = 0; d < dim; ++d) {
            ASSERT_NEAR(found[i * dim + d], expected[d], 5e-6) << positions << " x " << dim;
          }
        }
      }
    }
  }
}

TEST(AttendBlocks, GiveTheSameBitsHoweverManyQueriesShareALoad) {
  Random random(42);
  SCOPED_TRACE(random.trace());
  for (const std::size_t dim : {12U, 64U, 130U, 256U}) {
    const AttentionCache cache(random, 300, dim);
    constexpr std::size_t kQueries = 8;
    const auto q = random.normals(kQueries * dim);
    const auto one_by_one = attend_in_blocks(reference_kernels(), cache, q, kQueries, 1);
    for (const Kernels& kernels : KernelRegistry::attainable()) {
      for (const std::size_t at_once : {1U, 2U, 3U, 4U, 7U, 8U}) {
        EXPECT_TRUE(same_bytes(one_by_one, attend_in_blocks(kernels, cache, q, kQueries, at_once)))
            << kernels.variant() << ", " << at_once << " at once";
      }
    }
  }
}

TEST(AttendBlocks, WeighABlockByItsOwnLargestLogit) {
  // Logits of -1000 in the first block and 0 in the second: the first adds nothing, not NaN.
  constexpr std::size_t kDim = 4;
  constexpr std::size_t kPart = kDim + 2;
  const std::vector<float> parts = {5.0F, 5.0F, 5.0F, 5.0F, 2.0F, -1000.0F,
                                    8.0F, 4.0F, 2.0F, 1.0F, 4.0F, 0.0F};
  for (const Kernels& kernels : KernelRegistry::attainable()) {
    std::vector<float> out(kDim);
    kernels.merge_attention(parts.data(), kPart, 2, kDim, out.data());
    EXPECT_EQ(out, (std::vector<float>{2.0F, 1.0F, 0.5F, 0.25F})) << kernels.variant();
  }
}

}  // namespace
}  // namespace spel::kernels
