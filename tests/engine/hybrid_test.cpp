// The promise of the strict path: the same bits for M tokens at once or one by one, alone or in
// company, on any thread count and instruction set, after any sequence of rollbacks.
#include <cstring>
#include <gtest/gtest.h>
#include <memory>
#include <numeric>
#include <span>
#include <string>
#include <vector>

#include "kernels/isa.h"
#include "tests/engine/support.h"

namespace spel::engine {
namespace {

using testing::HybridRig;
using testing::odd_shape;
using testing::random_tokens;

struct Platform {
  kernels::Isa isa;
  std::size_t threads;
};

std::vector<Platform> platforms() {
  std::vector<Platform> all;
  for (const kernels::Isa isa : kernels::attainable_isas()) {
    all.push_back({isa, 1});
    all.push_back({isa, 2});
  }
  return all;
}

std::shared_ptr<const ModelWeights> odd_weights() {
  static const auto weights = random_model(odd_shape(), 11, WeightsDtype::kF32);
  return weights;
}

ModelOptions options() {
  ModelOptions options;
  options.max_batch_rows = 300;
  return options;
}

using Logits = std::vector<float>;

/// Feeds `tokens` in passes of `size`, and returns all logits.
Logits feed(CausalModel& model, SequenceState& state, std::span<const TokenId> tokens,
            std::size_t size, bool checkpoints) {
  Logits logits(tokens.size() * model.vocab_size());
  for (std::size_t at = 0; at < tokens.size(); at += size) {
    const auto part = tokens.subspan(at, std::min(size, tokens.size() - at));
    const ForwardItem item{&state, part, checkpoints, LogitRows::kAll,
                           &logits[at * model.vocab_size()]};
    model.forward({&item, 1});
  }
  return logits;
}

void expect_same_bits(const Logits& a, const Logits& b, const std::string& what) {
  ASSERT_EQ(a.size(), b.size()) << what;
  EXPECT_EQ(std::memcmp(a.data(), b.data(), a.size() * sizeof(float)), 0) << what;
}

/// The logits of what follows: they differ if any bit of the state does that matters.
Logits continuation(CausalModel& model, SequenceState& state) {
  const auto tokens = random_tokens(5, model.vocab_size(), 99);
  return feed(model, state, tokens, 1, false);
}

TEST(HybridModel, ManyTokensAtOnceEqualOneByOne) {
  for (const Platform& platform : platforms()) {
    HybridRig rig(odd_weights(), platform.isa, platform.threads, options());
    for (CausalModel* model : {static_cast<CausalModel*>(rig.target.get()),
                               static_cast<CausalModel*>(rig.draft.get())}) {
      const auto tokens = random_tokens(40, model->vocab_size(), 3);
      const auto reference_state = model->make_state();
      const Logits reference = feed(*model, *reference_state, tokens, 1, false);
      const Logits after = continuation(*model, *reference_state);
      for (std::size_t m = 1; m <= 33; ++m) {
        const bool checkpoints = m <= model->max_checkpoints();
        const auto state = model->make_state();
        const std::string what = std::string(isa_name(platform.isa)) + " threads " +
                                 std::to_string(platform.threads) + " M " + std::to_string(m);
        expect_same_bits(feed(*model, *state, tokens, m, checkpoints), reference, what);
        expect_same_bits(continuation(*model, *state), after, what + ", continued");
      }
    }
  }
}

TEST(HybridModel, EveryInstructionSetAndThreadCountGivesTheSameBits) {
  Logits target_reference;
  Logits draft_reference;
  for (const Platform& platform : platforms()) {
    HybridRig rig(odd_weights(), platform.isa, platform.threads, options());
    const auto tokens = random_tokens(150, rig.target->vocab_size(), 5);
    const auto target_state = rig.target->make_state();
    const auto draft_state = rig.draft->make_state();
    const Logits target = feed(*rig.target, *target_state, tokens, 37, false);
    const Logits draft = feed(*rig.draft, *draft_state, tokens, 37, false);
    if (target_reference.empty()) {
      target_reference = target;
      draft_reference = draft;
    }
    const std::string what(isa_name(platform.isa));
    expect_same_bits(target, target_reference, "target on " + what);
    expect_same_bits(draft, draft_reference, "draft on " + what);
  }
}

TEST(HybridModel, Bf16WeightsGiveTheSameBitsAsF32) {
  const auto bf16 = random_model(odd_shape(), 11, WeightsDtype::kBf16);
  const kernels::Isa isa = kernels::attainable_isas().front();
  HybridRig full(odd_weights(), isa, 1, options());
  HybridRig half(bf16, isa, 1, options());
  const auto& mixer = std::get<DeltaWeights>(half.weights->target.layers.front().mixer);
  ASSERT_EQ(std::get<kernels::DenseMatrix>(mixer.in).type(), kernels::DenseType::kBf16);
  const auto tokens = random_tokens(60, full.target->vocab_size(), 6);
  const auto a = full.target->make_state();
  const auto b = half.target->make_state();
  expect_same_bits(feed(*half.target, *b, tokens, 17, true),
                   feed(*full.target, *a, tokens, 17, true), "bf16 against f32");
}

TEST(HybridModel, ASequenceInCompanyEqualsTheSequenceAlone) {
  const kernels::Isa isa = kernels::attainable_isas().front();
  HybridRig rig(odd_weights(), isa, 2, options());
  CausalModel& model = *rig.target;
  constexpr std::size_t kCompany = 8;
  std::vector<std::vector<TokenId>> prompts;
  std::vector<Logits> alone;
  std::vector<std::unique_ptr<SequenceState>> states;
  for (std::size_t i = 0; i < kCompany; ++i) {
    prompts.push_back(random_tokens(10 + 7 * i, model.vocab_size(), 100 + i));
    const auto state = model.make_state();
    alone.push_back(feed(model, *state, prompts[i], 1, false));
    states.push_back(model.make_state());
  }
  // Uneven chunks, with and without checkpoints, all in one pass.
  std::vector<std::size_t> at(kCompany, 0);
  std::vector<Logits> together(kCompany);
  for (std::size_t i = 0; i < kCompany; ++i) {
    together[i].resize(prompts[i].size() * model.vocab_size());
  }
  while (true) {
    std::vector<ForwardItem> items;
    for (std::size_t i = 0; i < kCompany; ++i) {
      const std::size_t left = prompts[i].size() - at[i];
      if (left == 0) {
        continue;
      }
      const std::size_t count = std::min(left, 1 + (3 * i + at[i]) % 9);
      items.push_back({states[i].get(), std::span<const TokenId>(prompts[i]).subspan(at[i], count),
                       i % 2 == 0, LogitRows::kAll, &together[i][at[i] * model.vocab_size()]});
      at[i] += count;
    }
    if (items.empty()) {
      break;
    }
    model.forward(items);
  }
  for (std::size_t i = 0; i < kCompany; ++i) {
    expect_same_bits(together[i], alone[i], "sequence " + std::to_string(i));
  }
}

// Other engines corrupt exactly here: a plain step after a round with rejected proposals.
TEST(HybridModel, EverySequenceOfRoundsLeavesTheStateOfPlainDecoding) {
  const kernels::Isa isa = kernels::attainable_isas().front();
  HybridRig rig(odd_weights(), isa, 1, options());
  for (CausalModel* model :
       {static_cast<CausalModel*>(rig.target.get()), static_cast<CausalModel*>(rig.draft.get())}) {
    const auto tokens = random_tokens(560, model->vocab_size(), 8);
    const auto plain = model->make_state();
    const Logits reference = feed(*model, *plain, tokens, 1, false);
    const auto wrong = random_tokens(16, model->vocab_size(), 9);
    for (std::uint64_t seed = 0; seed < 6; ++seed) {
      const auto state = model->make_state();
      const auto script = random_tokens(2 * tokens.size(), 17, 1000 + seed);
      std::size_t at = 0;
      for (std::size_t round = 0; at + 17 < tokens.size(); ++round) {
        // k proposals (0 often), of which `kept` are right.
        const auto k = static_cast<std::size_t>(script[2 * round] % 3 == 0 ? 0 : script[2 * round]);
        const std::size_t kept = static_cast<std::size_t>(script[2 * round + 1]) % (k + 1);
        std::vector<TokenId> fed(tokens.begin() + static_cast<std::ptrdiff_t>(at),
                                 tokens.begin() + static_cast<std::ptrdiff_t>(at + 1 + kept));
        fed.insert(fed.end(), wrong.begin(), wrong.begin() + static_cast<std::ptrdiff_t>(k - kept));
        const Logits logits = feed(*model, *state, fed, fed.size(), true);
        ASSERT_EQ(std::memcmp(logits.data(), &reference[at * model->vocab_size()],
                              (kept + 1) * model->vocab_size() * sizeof(float)),
                  0)
            << "seed " << seed << " round " << round << " k " << k << " kept " << kept;
        state->rollback(k - kept);
        at += kept + 1;
        ASSERT_EQ(state->position(), at);
      }
    }
  }
}

TEST(HybridModel, SingleStepsCanBeTakenBackOneByOne) {
  const kernels::Isa isa = kernels::attainable_isas().front();
  HybridRig rig(odd_weights(), isa, 1, options());
  CausalModel& model = *rig.draft;
  const auto tokens = random_tokens(60, model.vocab_size(), 8);
  const auto plain = model.make_state();
  const Logits reference = feed(model, *plain, tokens, 1, false);
  const auto state = model.make_state();
  (void)feed(model, *state, std::span(tokens).first(20), 20, false);
  EXPECT_EQ(state->rollback_limit(), 0U);
  (void)feed(model, *state, random_tokens(16, model.vocab_size(), 1), 1, false);
  EXPECT_EQ(state->rollback_limit(), 16U);
  state->rollback(16);
  const Logits rest = feed(model, *state, std::span(tokens).subspan(20), 1, false);
  EXPECT_EQ(
      std::memcmp(rest.data(), &reference[20 * model.vocab_size()], rest.size() * sizeof(float)),
      0);
}

TEST(HybridModel, ACopiedStateContinuesAsTheOriginal) {
  const kernels::Isa isa = kernels::attainable_isas().front();
  HybridRig rig(odd_weights(), isa, 1, options());
  for (const std::size_t length : {1U, 2U, 3U, 16U, 17U, 100U}) {
    const auto tokens = random_tokens(length, rig.target->vocab_size(), length);
    const auto original = rig.target->make_state();
    (void)feed(*rig.target, *original, tokens, 7, true);
    const auto copy = rig.target->make_state();
    (void)feed(*rig.target, *copy, random_tokens(50, rig.target->vocab_size(), 4), 50, false);
    copy->copy_from(*original);
    EXPECT_EQ(copy->position(), length);
    const Logits from_copy = continuation(*rig.target, *copy);
    expect_same_bits(from_copy, continuation(*rig.target, *original), std::to_string(length));
  }
}

TEST(HybridModel, AResetStateHasForgottenEverything) {
  const kernels::Isa isa = kernels::attainable_isas().front();
  HybridRig rig(odd_weights(), isa, 1, options());
  const auto fresh = rig.target->make_state();
  const auto used = rig.target->make_state();
  (void)feed(*rig.target, *used, random_tokens(90, rig.target->vocab_size(), 2), 30, false);
  used->reset();
  EXPECT_EQ(used->position(), 0U);
  expect_same_bits(continuation(*rig.target, *used), continuation(*rig.target, *fresh), "reset");
}

}  // namespace
}  // namespace spel::engine
