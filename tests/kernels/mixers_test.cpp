#include <gtest/gtest.h>

#include "tests/kernels/support.h"

namespace spel::kernels {
namespace {

struct Heads {
  std::size_t dk;
  std::size_t dv;
};
constexpr Heads kHeads[] = {{1, 1}, {15, 17}, {16, 16}, {33, 5}, {64, 64}, {65, 31}, {128, 128}};

DeltaRule rule_for(Heads shape, bool decay_before_read) {
  return {.head_dim_k = shape.dk,
          .head_dim_v = shape.dv,
          .decay = 0.93F,
          .write = 0.4F,
          .read_scale = 0.125F,
          .decay_before_read = decay_before_read};
}

struct DeltaInput {
  DeltaInput(Random& random, Heads shape)
      : state(random.normals(shape.dk * shape.dv)),
        q(random.normals(shape.dk)),
        k(random.normals(shape.dk, 0.2F)),
        v(random.normals(shape.dv)) {}
  std::vector<float> state, q, k, v;
};

TEST(DeltaStep, EverySetGivesTheSameStateAndOutput) {
  Random random(31);
  SCOPED_TRACE(random.trace());
  for (const Heads shape : kHeads) {
    for (const bool before : {false, true}) {
      const DeltaRule rule = rule_for(shape, before);
      const DeltaInput in(random, shape);
      expect_same_on_every_set([&](const Kernels& kernels) {
        std::vector<float> result(in.state.size() + shape.dv);
        kernels.delta_step(rule, in.state.data(), result.data(), in.q.data(), in.k.data(),
                           in.v.data(), result.data() + in.state.size());
        return result;
      });
    }
  }
}

TEST(DeltaStep, InPlaceGivesTheBitsOfTwoBuffers) {
  Random random(32);
  SCOPED_TRACE(random.trace());
  for (const Heads shape : kHeads) {
    for (const bool before : {false, true}) {
      const DeltaRule rule = rule_for(shape, before);
      const DeltaInput in(random, shape);
      for (const Kernels& kernels : KernelRegistry::attainable()) {
        std::vector<float> to(in.state.size());
        std::vector<float> out(shape.dv), out_in_place(shape.dv);
        kernels.delta_step(rule, in.state.data(), to.data(), in.q.data(), in.k.data(), in.v.data(),
                           out.data());
        auto in_place = in.state;
        kernels.delta_step(rule, in_place.data(), in_place.data(), in.q.data(), in.k.data(),
                           in.v.data(), out_in_place.data());
        EXPECT_TRUE(same_bytes(to, in_place)) << kernels.variant();
        EXPECT_TRUE(same_bytes(out, out_in_place)) << kernels.variant();
      }
    }
  }
}

TEST(DeltaStep, FollowsTheUpdateRule) {
  Random random(33);
  SCOPED_TRACE(random.trace());
  constexpr Heads kShape = {64, 64};
  for (const bool before : {false, true}) {
    const DeltaRule rule = rule_for(kShape, before);
    const DeltaInput in(random, kShape);
    std::vector<float> to(in.state.size());
    std::vector<float> out(kShape.dv);
    Kernels::select().delta_step(rule, in.state.data(), to.data(), in.q.data(), in.k.data(),
                                 in.v.data(), out.data());
    for (std::size_t i = 0; i < kShape.dv; ++i) {
      double read = 0.0;
      for (std::size_t j = 0; j < kShape.dk; ++j) {
        read += static_cast<double>(in.state[i * kShape.dk + j]) * in.k[j];
      }
      const double update = 0.4 * (in.v[i] - (before ? 0.93 : 1.0) * read);
      double o = 0.0;
      for (std::size_t j = 0; j < kShape.dk; ++j) {
        const double next = 0.93 * in.state[i * kShape.dk + j] + update * in.k[j];
        EXPECT_NEAR(to[i * kShape.dk + j], next, 1e-5);
        o += next * in.q[j];
      }
      EXPECT_NEAR(out[i], 0.125 * o, 1e-5);
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
