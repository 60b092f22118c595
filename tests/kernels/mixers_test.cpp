#include <algorithm>
#include <gtest/gtest.h>

#include "tests/kernels/support.h"

namespace spel::kernels {
namespace {

struct Heads {
  std::size_t dk;
  std::size_t dv;
};
constexpr float kDecay = 0.93F;
constexpr float kWrite = 0.4F;
constexpr Heads kHeads[] = {{1, 1}, {15, 17}, {16, 16}, {33, 5}, {64, 64}, {65, 31}, {128, 128}};

DeltaRule rule_for(Heads shape, bool decay_before_read) {
  return {.head_dim_k = shape.dk,
          .head_dim_v = shape.dv,
          .read_scale = 0.125F,
          .decay_before_read = decay_before_read};
}

/// Tokens of one head, from one state.
struct DeltaInput {
  DeltaInput(Random& random, Heads shape_in, std::size_t count_in)
      : shape(shape_in),
        count(count_in),
        state(random.normals(shape.dk * shape.dv)),
        q(random.normals(shape.dk * count)),
        k(random.normals(shape.dk * count, 0.2F)),
        v(random.normals(shape.dk * count + shape.dv)) {}

  Heads shape;
  std::size_t count;
  std::vector<float> state, q, k, v;  ///< q, k, v: token t at t * dk.
};

/// What delta_rule() gives: outputs, and the state after every token that was kept.
struct DeltaResult {
  std::vector<float> out;     ///< [count][dv]
  std::vector<float> states;  ///< [count][dv][dk]; zeros where nothing was kept.
};

enum class Kept { kAll, kLast };

DeltaResult run_delta(const Kernels& kernels, const DeltaRule& rule, const DeltaInput& in,
                      Kept kept, bool past_caches) {
  const std::size_t size = in.state.size();
  // On a line of its own, so that streamed stores are possible where the shape allows them.
  AlignedBuffer slots(std::max<std::size_t>(in.count * size * sizeof(float), 1));
  auto* states = reinterpret_cast<float*>(slots.data());
  std::fill_n(states, in.count * size, 0.0F);
  std::vector<float*> to;
  for (std::size_t t = 0; t < in.count; ++t) {
    to.push_back(kept == Kept::kAll || t + 1 == in.count ? states + t * size : nullptr);
  }
  std::vector<float> out(in.count * in.shape.dv), work(16 * in.shape.dk);
  kernels.delta_rule(rule, {.count = in.count,
                            .q = in.q.data(),
                            .k = in.k.data(),
                            .v = in.v.data(),
                            .stride = in.shape.dk,
                            .decay = &kDecay,
                            .write = &kWrite,
                            .gate_stride = 0,
                            .out = out.data(),
                            .out_stride = in.shape.dv,
                            .from = in.state.data(),
                            .to = to.data(),
                            .to_offset = 0,
                            .work = work.data(),
                            .past_caches = past_caches});
  return {out, {states, states + in.count * size}};
}

/// One token at a time, each from the state the one before it kept.
DeltaResult run_token_by_token(const Kernels& kernels, const DeltaRule& rule,
                               const DeltaInput& in) {
  DeltaResult all;
  auto state = in.state;
  for (std::size_t t = 0; t < in.count; ++t) {
    std::vector<float> out(in.shape.dv), work(16 * in.shape.dk);
    float* const in_place = state.data();
    kernels.delta_rule(rule, {.count = 1,
                              .q = in.q.data() + t * in.shape.dk,
                              .k = in.k.data() + t * in.shape.dk,
                              .v = in.v.data() + t * in.shape.dk,
                              .stride = 0,
                              .decay = &kDecay,
                              .write = &kWrite,
                              .gate_stride = 0,
                              .out = out.data(),
                              .out_stride = 0,
                              .from = in_place,
                              .to = &in_place,
                              .to_offset = 0,
                              .work = work.data(),
                              .past_caches = false});
    all.out.insert(all.out.end(), out.begin(), out.end());
    all.states.insert(all.states.end(), state.begin(), state.end());
  }
  return all;
}

TEST(DeltaRule, EverySetGivesTheSameStatesAndOutputs) {
  Random random(31);
  SCOPED_TRACE(random.trace());
  for (const Heads shape : kHeads) {
    for (const bool before : {false, true}) {
      const DeltaRule rule = rule_for(shape, before);
      const DeltaInput in(random, shape, 3);
      expect_same_on_every_set([&](const Kernels& kernels) {
        DeltaResult result = run_delta(kernels, rule, in, Kept::kAll, true);
        result.out.insert(result.out.end(), result.states.begin(), result.states.end());
        return result.out;
      });
    }
  }
}

TEST(DeltaRule, TokensTogetherGiveTheBitsOfTokensOneByOneInPlace) {
  Random random(32);
  SCOPED_TRACE(random.trace());
  for (const Heads shape : kHeads) {
    for (const bool before : {false, true}) {
      const DeltaRule rule = rule_for(shape, before);
      for (const std::size_t count : {1U, 2U, 17U}) {
        const DeltaInput in(random, shape, count);
        for (const Kernels& kernels : KernelRegistry::attainable()) {
          const DeltaResult alone = run_token_by_token(kernels, rule, in);
          for (const bool past_caches : {false, true}) {
            const DeltaResult all = run_delta(kernels, rule, in, Kept::kAll, past_caches);
            EXPECT_TRUE(same_bytes(all.states, alone.states)) << kernels.variant();
            EXPECT_TRUE(same_bytes(all.out, alone.out)) << kernels.variant();
            const DeltaResult last = run_delta(kernels, rule, in, Kept::kLast, past_caches);
            EXPECT_TRUE(same_bytes(last.out, alone.out)) << kernels.variant();
            EXPECT_TRUE(
                std::equal(alone.states.end() - static_cast<std::ptrdiff_t>(in.state.size()),
                           alone.states.end(),
                           last.states.end() - static_cast<std::ptrdiff_t>(in.state.size())))
                << kernels.variant();
          }
        }
      }
    }
  }
}

TEST(DeltaRule, FollowsTheUpdateRule) {
  Random random(33);
  SCOPED_TRACE(random.trace());
  constexpr Heads kShape = {64, 64};
  for (const bool before : {false, true}) {
    const DeltaRule rule = rule_for(kShape, before);
    const DeltaInput in(random, kShape, 1);
    const DeltaResult result = run_delta(Kernels::select(), rule, in, Kept::kAll, true);
    for (std::size_t i = 0; i < kShape.dv; ++i) {
      double read = 0.0;
      for (std::size_t j = 0; j < kShape.dk; ++j) {
        read += static_cast<double>(in.state[i * kShape.dk + j]) * in.k[j];
      }
      const double update = 0.4 * (in.v[i] - (before ? 0.93 : 1.0) * read);
      double o = 0.0;
      for (std::size_t j = 0; j < kShape.dk; ++j) {
        const double next = 0.93 * in.state[i * kShape.dk + j] + update * in.k[j];
        EXPECT_NEAR(result.states[i * kShape.dk + j], next, 1e-5);
        o += next * in.q[j];
      }
      EXPECT_NEAR(result.out[i], 0.125 * o, 1e-5);
    }
  }
}

/// A cache whose positions past the last are filled with what must never be read into the result.
struct Cache {
  Cache(Random& random, const Kernels& kernels, std::size_t positions_in, std::size_t dim_in)
      : positions(positions_in), dim(dim_in), keys((positions + 15) / 16 * 16 * dim, 1e30F) {
    rows = random.normals(positions * dim);
    values = random.normals(positions * dim);
    for (std::size_t j = 0; j < positions; ++j) {
      kernels.store_key(keys.data(), j, dim, rows.data() + j * dim);
    }
  }
  [[nodiscard]] AttentionHead head(float scale) const {
    return {keys.data(), values.data(), positions, dim, scale};
  }
  std::size_t positions, dim;
  std::vector<float> keys, rows, values;
};

TEST(Attend, EverySetGivesTheSameBits) {
  Random random(34);
  SCOPED_TRACE(random.trace());
  for (const std::size_t dim : {2U, 15U, 16U, 17U, 64U, 128U}) {
    for (const std::size_t positions : {1U, 2U, 15U, 16U, 17U, 63U, 200U}) {
      const Cache cache(random, reference_kernels(), positions, dim);
      const auto q = random.normals(dim);
      expect_same_on_every_set([&](const Kernels& kernels) {
        std::vector<float> scratch((positions + 15) / 16 * 16);
        std::vector<float> out(dim);
        kernels.attend(cache.head(0.7F), q.data(), scratch.data(), out.data());
        return out;
      });
    }
  }
}

TEST(Attend, IsTheSoftmaxWeightedMeanOfTheValues) {
  Random random(35);
  SCOPED_TRACE(random.trace());
  constexpr std::size_t kDim = 64;
  for (const std::size_t positions : {1U, 5U, 33U, 300U}) {
    const Cache cache(random, Kernels::select(), positions, kDim);
    const auto q = random.normals(kDim);
    std::vector<float> scratch((positions + 15) / 16 * 16);
    std::vector<float> out(kDim);
    Kernels::select().attend(cache.head(0.3F), q.data(), scratch.data(), out.data());
    std::vector<double> logits(positions);
    double top = -1e300;
    for (std::size_t j = 0; j < positions; ++j) {
      for (std::size_t d = 0; d < kDim; ++d) {
        logits[j] += 0.3 * static_cast<double>(q[d]) * cache.rows[j * kDim + d];
      }
      top = std::max(top, logits[j]);
    }
    double sum = 0.0;
    for (double& l : logits) {
      sum += l = std::exp(l - top);
    }
    for (std::size_t d = 0; d < kDim; ++d) {
      double expected = 0.0;
      for (std::size_t j = 0; j < positions; ++j) {
        expected += logits[j] / sum * cache.values[j * kDim + d];
      }
      EXPECT_NEAR(out[d], expected, 2e-6) << "positions=" << positions;
    }
  }
}

}  // namespace
}  // namespace spel::kernels
