// numerics=fast: refused where there is no BLAS; where there is one, close to strict and never in
// the way of it.
#include <gtest/gtest.h>
#include <vector>

#include "config/base/error.h"
#include "kernels/blas.h"
#include "tests/engine/support.h"

namespace spel::engine {
namespace {

using testing::HybridRig;
using testing::random_tokens;

ModelOptions fast_options() {
  ModelOptions options;
  options.numerics = Numerics::kFast;
  return options;
}

std::vector<float> logits_at_once(CausalModel& model, std::span<const TokenId> tokens) {
  const auto state = model.make_state();
  std::vector<float> logits(tokens.size() * model.vocab_size());
  const ForwardItem item{state.get(), tokens, true, LogitRows::kAll, logits.data()};
  model.forward({&item, 1});
  return logits;
}

TEST(FastNumerics, IsRefusedWithoutABlasAndCloseToStrictWithOne) {
  const kernels::Isa isa = kernels::attainable_isas().front();
  for (const WeightsDtype dtype : {WeightsDtype::kF32, WeightsDtype::kBf16}) {
    const auto weights = random_model(testing::odd_shape(), 5, dtype);
    if (!kernels::has_blas()) {
      EXPECT_THROW(HybridRig(weights, isa, 1, fast_options()), Error);
      continue;
    }
    HybridRig fast(weights, isa, 1, fast_options());
    HybridRig strict(weights, isa, 1, {});
    const auto tokens = random_tokens(9, fast.target->vocab_size(), 4);
    const auto found = logits_at_once(*fast.target, tokens);
    const auto expected = logits_at_once(*strict.target, tokens);
    for (std::size_t i = 0; i < found.size(); ++i) {
      ASSERT_NEAR(found[i], expected[i], 1e-3F) << "logit " << i;
    }
    // One token at a time goes through our own kernels in both.
    const auto one = std::span(tokens).first(1);
    EXPECT_EQ(logits_at_once(*fast.target, one), logits_at_once(*strict.target, one));
  }
}

}  // namespace
}  // namespace spel::engine
