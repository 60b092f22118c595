#include <algorithm>
#include <gtest/gtest.h>

#include "kernels/scalar_math.h"
#include "tests/kernels/attention_cache.h"

namespace spel::kernels {
namespace {

struct Heads {
  std::size_t dk;
  std::size_t dv;
};
constexpr Heads kHeads[] = {{1, 1},   {15, 17}, {16, 16},  {12, 24},   {33, 5},
                            {64, 64}, {65, 31}, {96, 192}, {128, 128}, {128, 64}};

/// Of one token in each.
constexpr std::size_t kGateStride = 3;

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
        v(random.normals(shape.dk * count + shape.dv)),
        decay(random.normals(kGateStride * count)),
        write(random.normals(kGateStride * count)) {
    for (float& x : decay) {
      x = sigmoid_f32(x + 2.0F);
    }
    for (float& x : write) {
      x = 2.0F * sigmoid_f32(x);
    }
  }
  /// The gates of the first token for every one.
  [[nodiscard]] DeltaInput with_static_gates() const {
    DeltaInput in = *this;
    in.gate_stride = 0;
    return in;
  }

  Heads shape;
  std::size_t count;
  std::size_t gate_stride = kGateStride;
  std::vector<float> state, q, k, v;  ///< q, k, v: token t at t * dk.
  std::vector<float> decay, write;    ///< Token t at t * gate_stride.
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
                            .decay = in.decay.data(),
                            .write = in.write.data(),
                            .gate_stride = in.gate_stride,
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
                              .decay = &in.decay[t * in.gate_stride],
                              .write = &in.write[t * in.gate_stride],
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
        const DeltaInput own_gates(random, shape, count);
        for (const DeltaInput& in : {own_gates, own_gates.with_static_gates()}) {
          for (const Kernels& kernels : KernelRegistry::attainable()) {
            SCOPED_TRACE(kernels.variant());
            const DeltaResult alone = run_token_by_token(kernels, rule, in);
            const auto size = static_cast<std::ptrdiff_t>(in.state.size());
            for (const bool past_caches : {false, true}) {
              const DeltaResult all = run_delta(kernels, rule, in, Kept::kAll, past_caches);
              EXPECT_TRUE(same_bytes(all.states, alone.states));
              EXPECT_TRUE(same_bytes(all.out, alone.out));
              const DeltaResult last = run_delta(kernels, rule, in, Kept::kLast, past_caches);
              EXPECT_TRUE(same_bytes(last.out, alone.out));
              EXPECT_TRUE(std::equal(alone.states.end() - size, alone.states.end(),
                                     last.states.end() - size));
            }
          }
        }
      }
    }
  }
}

/// The rule in double over all tokens, [count][dv]; `state` is brought to the one after the last.
std::vector<double> follow_rule(const DeltaInput& in, bool decay_before_read, double read_scale,
                                std::vector<double>& state) {
  std::vector<double> out;
  for (std::size_t t = 0; t < in.count; ++t) {
    const float* q = in.q.data() + t * in.shape.dk;
    const float* k = in.k.data() + t * in.shape.dk;
    const double decay = in.decay[t * in.gate_stride];
    for (std::size_t i = 0; i < in.shape.dv; ++i) {
      double* row = state.data() + i * in.shape.dk;
      double read = 0.0;
      for (std::size_t j = 0; j < in.shape.dk; ++j) {
        read += row[j] * k[j];
      }
      const double update = in.write[t * in.gate_stride] *
                            (in.v[t * in.shape.dk + i] - (decay_before_read ? decay : 1.0) * read);
      double o = 0.0;
      for (std::size_t j = 0; j < in.shape.dk; ++j) {
        row[j] = decay * row[j] + update * k[j];
        o += row[j] * q[j];
      }
      out.push_back(read_scale * o);
    }
  }
  return out;
}

TEST(DeltaRule, FollowsTheUpdateRule) {
  Random random(33);
  SCOPED_TRACE(random.trace());
  for (const Heads shape : kHeads) {
    for (const bool before : {false, true}) {
      const DeltaRule rule = rule_for(shape, before);
      DeltaInput in(random, shape, 5);
      for (std::size_t t = 0; t < in.count; ++t) {
        Kernels::select().l2_normalize(&in.k[t * shape.dk], 1, shape.dk, 1e-6F);
      }
      const DeltaResult result = run_delta(Kernels::select(), rule, in, Kept::kLast, true);
      std::vector<double> state(in.state.begin(), in.state.end());
      const std::vector<double> out = follow_rule(in, before, rule.read_scale, state);
      for (std::size_t i = 0; i < out.size(); ++i) {
        EXPECT_NEAR(result.out[i], out[i], 2e-5) << shape.dk << " x " << shape.dv;
      }
      const float* after = result.states.data() + (in.count - 1) * in.state.size();
      for (std::size_t i = 0; i < state.size(); ++i) {
        EXPECT_NEAR(after[i], state[i], 1e-5) << shape.dk << " x " << shape.dv;
      }
    }
  }
}

AttentionHead head_of(const AttentionCache& cache, float scale) {
  return {cache.keys.data(), cache.values.data(), cache.positions, cache.dim, scale};
}

TEST(Attend, EverySetGivesTheSameBits) {
  Random random(34);
  SCOPED_TRACE(random.trace());
  for (const std::size_t dim : {2U, 15U, 16U, 17U, 64U, 128U}) {
    for (const std::size_t positions : {1U, 2U, 15U, 16U, 17U, 63U, 200U}) {
      const AttentionCache cache(random, positions, dim);
      const auto q = random.normals(dim);
      expect_same_on_every_set([&](const Kernels& kernels) {
        std::vector<float> scratch((positions + 15) / 16 * 16);
        std::vector<float> out(dim);
        kernels.attend(head_of(cache, 0.7F), q.data(), scratch.data(), out.data());
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
    const AttentionCache cache(random, positions, kDim);
    const auto q = random.normals(kDim);
    std::vector<float> scratch((positions + 15) / 16 * 16);
    std::vector<float> out(kDim);
    Kernels::select().attend(head_of(cache, 0.3F), q.data(), scratch.data(), out.data());
    const std::vector<double> expected = cache.attended(q.data(), 0.3F);
    for (std::size_t d = 0; d < kDim; ++d) {
      EXPECT_NEAR(out[d], expected[d], 2e-6) << "positions=" << positions;
    }
  }
}

}  // namespace
}  // namespace spel::kernels
