// Attention in blocks, the gates of the delta rule and rotation by halves against their definitions
// in double.
#include <algorithm>
#include <cmath>
#include <gtest/gtest.h>

#include "tests/kernels/support.h"

namespace spel::kernels {
namespace {

/// One key-value head's cache, and what the definition makes of it.
struct Cache {
  Cache(Random& random, std::size_t positions_in, std::size_t dim_in)
      : positions(positions_in), dim(dim_in), keys((positions + 15) / 16 * 16 * dim, 1e30F) {
    rows = random.normals(positions * dim);
    values = random.normals(positions * dim);
    for (std::size_t j = 0; j < positions; ++j) {
      Kernels::select().store_key(keys.data(), j, dim, rows.data() + j * dim);
    }
  }

  [[nodiscard]] std::vector<double> attended(const float* q, double scale) const {
    std::vector<double> weights(positions);
    double top = -1e300;
    for (std::size_t j = 0; j < positions; ++j) {
      for (std::size_t d = 0; d < dim; ++d) {
        weights[j] += scale * static_cast<double>(q[d]) * rows[j * dim + d];
      }
      top = std::max(top, weights[j]);
    }
    double sum = 0.0;
    for (double& weight : weights) {
      sum += weight = std::exp(weight - top);
    }
    std::vector<double> out(dim);
    for (std::size_t j = 0; j < positions; ++j) {
      for (std::size_t d = 0; d < dim; ++d) {
        out[d] += weights[j] / sum * values[j * dim + d];
      }
    }
    return out;
  }

  std::size_t positions, dim;
  std::vector<float> keys, rows, values;
};

constexpr float kScale = 0.3F;

/// [queries][dim]
std::vector<float> attend_in_blocks(const Kernels& kernels, const Cache& cache,
                                    const std::vector<float>& q, std::size_t queries,
                                    std::size_t at_once) {
  const std::size_t dim = cache.dim;
  const std::size_t part = dim + 2;
  const std::size_t blocks = (cache.positions + kAttentionBlock - 1) / kAttentionBlock;
  std::vector<float> parts(queries * blocks * part), out(queries * dim);
  for (std::size_t b = 0; b < blocks; ++b) {
    const std::size_t from = b * kAttentionBlock;
    const AttentionBlock block{.keys = cache.keys.data() + from * dim,
                               .values = cache.values.data() + from * dim,
                               .positions = std::min(kAttentionBlock, cache.positions - from),
                               .head_dim = dim,
                               .logit_scale = kScale};
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

TEST(AttendBlocks, AreTheSoftmaxWeightedMeanOfTheValues) {
  Random random(41);
  SCOPED_TRACE(random.trace());
  for (const std::size_t dim : {16U, 33U, 256U}) {
    for (const std::size_t positions : {1U, 17U, 256U, 257U, 1100U}) {
      const Cache cache(random, positions, dim);
      const std::size_t queries = 1 + positions % 7;
      const auto q = random.normals(queries * dim);
      const auto found = attend_in_blocks(Kernels::select(), cache, q, queries, queries);
      for (std::size_t i = 0; i < queries; ++i) {
        const auto expected = cache.attended(q.data() + i * dim, kScale);
        for (std::size_t d = 0; d < dim; ++d) {
          EXPECT_NEAR(found[i * dim + d], expected[d], 3e-6) << positions << " x " << dim;
        }
      }
    }
  }
}

TEST(AttendBlocks, GiveTheSameBitsOnEverySetHoweverManyQueriesShareALoad) {
  Random random(42);
  SCOPED_TRACE(random.trace());
  for (const std::size_t dim : {12U, 64U, 130U}) {
    const Cache cache(random, 300, dim);
    constexpr std::size_t kQueries = 7;
    const auto q = random.normals(kQueries * dim);
    const auto one_by_one = attend_in_blocks(reference_kernels(), cache, q, kQueries, 1);
    for (const Kernels& kernels : KernelRegistry::attainable()) {
      for (const std::size_t at_once : {1U, 2U, 3U, 4U, 7U}) {
        EXPECT_TRUE(same_bytes(one_by_one, attend_in_blocks(kernels, cache, q, kQueries, at_once)))
            << kernels.variant() << ", " << at_once << " at once";
      }
    }
  }
}

TEST(DeltaGates, AreExpOfMinusRateTimesSoftplusAndAScaledSigmoid) {
  std::vector<float> a, b, rate, bias;
  for (float x = -110.0F; x <= 110.0F; x += 0.37F) {
    a.push_back(x);
    b.push_back(-x / 3.0F);
    bias.push_back(x / 7.0F);
    rate.push_back(std::exp(-4.0F + 5.0F * std::abs(std::sin(x))));
  }
  std::vector<float> decay(a.size()), write(a.size());
  Kernels::select().delta_gates(a.data(), b.data(), rate.data(), bias.data(), a.size(), 2.0F,
                                decay.data(), write.data());
  for (std::size_t i = 0; i < a.size(); ++i) {
    const double x = static_cast<double>(a[i] + bias[i]);
    const double softplus = std::max(x, 0.0) + std::log1p(std::exp(-std::abs(x)));
    const double exponent = rate[i] * softplus;
    // Half an ulp of the exponent is this much of the result.
    EXPECT_NEAR(decay[i], std::exp(-exponent),
                3e-7 * (1.0 + exponent) * std::exp(-exponent) + 1e-37)
        << a[i];
    EXPECT_NEAR(write[i], 2.0 / (1.0 + std::exp(-static_cast<double>(b[i]))), 5e-7) << b[i];
  }
}

TEST(RopeHalves, TurnsPairsHalfTheRotaryPartApartAndLeavesTheRest) {
  Random random(43);
  SCOPED_TRACE(random.trace());
  constexpr std::size_t kHeads = 3;
  for (const std::size_t half : {1U, 4U, 16U, 37U}) {
    const std::size_t stride = 2 * half + 5;
    const auto before = random.normals(kHeads * stride);
    const auto cos = random.normals(half);
    const auto sin = random.normals(half);
    auto x = before;
    Kernels::select().rope_halves(x.data(), kHeads, stride, 2 * half, cos.data(), sin.data());
    for (std::size_t at = 0; at < x.size(); ++at) {
      const std::size_t i = at % stride;
      double expected = before[at];
      if (i < half) {
        expected = static_cast<double>(before[at]) * cos[i] -
                   static_cast<double>(before[at + half]) * sin[i];
      } else if (i < 2 * half) {
        expected = static_cast<double>(before[at]) * cos[i - half] +
                   static_cast<double>(before[at - half]) * sin[i - half];
      }
      EXPECT_NEAR(x[at], expected, 1e-5);
    }
  }
}

}  // namespace
}  // namespace spel::kernels
