// Sampler against the definition written out, on random logits of many kinds, parameters at their
// corners, and vocabularies from one id to 248,320.
//
// SPEL_SAMPLER_CASES runs so many cases instead, SPEL_SAMPLER_SEED begins with another.
#include <array>
#include <bit>
#include <cmath>
#include <cstdlib>
#include <gtest/gtest.h>
#include <limits>
#include <memory>
#include <random>
#include <sstream>
#include <vector>

#include "engine/sample/sampler.h"
#include "kernels/registry.h"
#include "tests/engine/defined_sampler.h"

namespace spel::engine {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr std::size_t kLargeVocabulary = 248320;

class Draw {
 public:
  explicit Draw(std::uint64_t seed) : engine_(seed) {}

  std::uint64_t word() { return engine_(); }
  std::size_t below(std::size_t n) { return static_cast<std::size_t>(engine_() % n); }
  bool one_in(std::size_t n) { return below(n) == 0; }
  float uniform() { return static_cast<float>(engine_() >> 40) * 0x1p-24F; }
  /// Near enough to normal, and fast.
  float normal() {
    float sum = -6.0F;
    for (std::size_t i = 0; i < 3; ++i) {
      const std::uint64_t bits = engine_();
      sum += static_cast<float>((bits & 0xFFFFU) + (bits >> 16 & 0xFFFFU) + (bits >> 32 & 0xFFFFU) +
                                (bits >> 48)) *
             0x1p-16F;
    }
    return sum;
  }
  template <class T, std::size_t N>
  T any_of(const std::array<T, N>& values) {
    return values[below(N)];
  }
  TokenId token(std::size_t vocab) { return static_cast<TokenId>(below(vocab)); }
  std::vector<TokenId> tokens(std::size_t vocab, std::size_t most) {
    std::vector<TokenId> result(below(most + 1));
    for (TokenId& id : result) {
      id = token(vocab);
    }
    return result;
  }

 private:
  std::mt19937_64 engine_;
};

std::vector<float> random_logits(Draw& draw, std::size_t n) {
  std::vector<float> logits(n);
  const auto fill = [&](auto value) {
    for (float& logit : logits) {
      logit = value();
    }
  };
  switch (draw.below(12)) {
    case 0:  // All the same.
      fill([same = draw.normal()] { return same; });
      break;
    case 1:  // Few values, so many ties.
      fill([&] { return static_cast<float>(draw.below(4)); });
      break;
    case 2:  // A model sure of a few.
      fill([&] { return 2.5F * draw.normal(); });
      for (std::size_t i = 0; i < 1 + n / 50 && i < 40; ++i) {
        logits[draw.below(n)] = 10.0F + 10.0F * draw.uniform();
      }
      break;
    case 3:  // Hardly any difference.
      fill([&] { return 1e-3F * draw.normal(); });
      break;
    case 4:
      fill([&] { return std::ldexp(draw.normal(), static_cast<int>(draw.below(100)) - 50); });
      break;
    case 5:  // Huge, up to what f32 holds.
      fill([&] { return std::ldexp(draw.normal(), 120); });
      break;
    case 6:  // Subnormal.
      fill([&] { return std::ldexp(draw.normal(), -140); });
      break;
    case 7:  // Most of it missing.
      fill([&] { return draw.one_in(8) ? draw.normal() : -kInf; });
      break;
    case 8:
      fill([&] {
        constexpr std::array kSpecial{kNan, kNan, -kInf, 0.0F, -0.0F, 1.0F, -3.0e38F, 1e-45F};
        return draw.one_in(3) ? draw.any_of(kSpecial) : draw.normal();
      });
      break;
    case 9:  // Small steps, as of a low-bit head.
      fill([&] { return std::round(8.0F * draw.normal()) / 4.0F; });
      break;
    case 10:
      // A few alike, and so little else that its sum depends on the order: half of the total is, or
      // is not, the weight of half of the few.
      fill([low = -36.0F - 2.0F * draw.uniform()] { return low; });
      for (std::size_t i = std::size_t{2} << draw.below(3); i > 0; --i) {
        logits[draw.below(n)] = 0.0F;
      }
      break;
    default:
      fill([deviation = 6.0F * draw.uniform(), &draw] { return deviation * draw.normal(); });
      break;
  }
  if (draw.one_in(40)) {
    logits[draw.below(n)] = kInf;
  }
  if (draw.one_in(200)) {
    fill([] { return kNan; });
  }
  if (draw.one_in(200)) {
    fill([] { return -kInf; });
  }
  return logits;
}

SamplingParams random_params(Draw& draw, std::size_t vocab) {
  SamplingParams params;
  const std::array temperatures{0.0F,
                                0.0F,
                                0.3F,
                                0.6F,
                                0.7F,
                                1.0F,
                                1.0F,
                                1.0F,
                                1.5F,
                                2.0F,
                                100.0F,
                                1e-3F,
                                1e-10F,
                                std::numeric_limits<float>::denorm_min(),
                                1e25F,
                                3.4e38F,
                                2.0F * draw.uniform() + 1e-6F};
  params.temperature = draw.any_of(temperatures);
  if (draw.one_in(3)) {
    constexpr std::array kRanks{1, 2, 5, 20, 50, 1000, 100000, std::numeric_limits<int>::max()};
    params.top_k =
        draw.one_in(3) ? static_cast<std::int32_t>(1 + draw.below(vocab)) : draw.any_of(kRanks);
  }
  if (draw.one_in(2)) {
    const std::array masses{0.95F,
                            0.9F,
                            0.8F,
                            0.5F,
                            0.25F,
                            0.75F,
                            0.999F,
                            0.9999999F,
                            1e-6F,
                            1e-30F,
                            draw.uniform() + 1e-9F};
    params.top_p = draw.any_of(masses);
  }
  if (draw.one_in(4)) {
    const std::array ratios{0.05F, 0.1F, 0.5F, 1.0F, 1e-10F, 1e-40F, draw.uniform()};
    params.min_p = draw.any_of(ratios);
  }
  if (draw.one_in(3)) {
    params.repetition_penalty = draw.any_of(std::array{1.0F, 1.1F, 2.0F, 0.5F});
    params.presence_penalty = draw.any_of(std::array{0.0F, 1.5F, -2.0F});
    params.frequency_penalty = draw.any_of(std::array{0.0F, 0.25F, -1.0F});
  }
  if (draw.one_in(3)) {
    for (const TokenId token : draw.tokens(vocab, 6)) {
      params.logit_bias.emplace_back(token, draw.any_of(std::array{-100.0F, 100.0F, 0.5F, -3.0F}));
    }
  }
  params.seed = draw.one_in(4) ? draw.below(3) : draw.word();
  return params;
}

std::shared_ptr<const TokenMask> random_mask(Draw& draw, std::size_t vocab) {
  if (!draw.one_in(3)) {
    return nullptr;
  }
  const auto mask = std::make_shared<TokenMask>(vocab);
  const auto forbid = [&](std::size_t first, std::size_t end) {
    for (std::size_t id = first; id < end; ++id) {
      mask->forbid(id);
    }
  };
  const std::size_t kind = draw.below(4);
  if (kind == 0) {
    forbid(vocab - draw.below(vocab / 2 + 1), vocab);
  } else if (kind == 1) {
    for (std::size_t i = 0; i < 5; ++i) {
      const std::size_t first = draw.below(vocab);
      forbid(first, std::min(vocab, first + draw.below(100)));
    }
  } else if (kind == 2) {
    const std::size_t left = draw.below(vocab);
    forbid(0, left);
    forbid(left + 1, vocab);
  } else if (draw.one_in(5)) {
    forbid(0, vocab);
  }
  return mask;
}

std::string text_of(const SamplingParams& p, std::size_t vocab, std::uint64_t seed) {
  std::ostringstream text;
  text << "SPEL_SAMPLER_SEED=" << seed << ": " << vocab << " ids, T " << p.temperature << ", top_k "
       << p.top_k << ", top_p " << p.top_p << ", min_p " << p.min_p << ", penalties "
       << p.repetition_penalty << ' ' << p.presence_penalty << ' ' << p.frequency_penalty << ", "
       << p.logit_bias.size() << " biases";
  return text.str();
}

const kernels::Kernels& some_kernels(std::uint64_t seed) {
  const auto sets = kernels::KernelRegistry::attainable();
  return *(sets.begin() + static_cast<std::ptrdiff_t>(seed % sets.size()));
}

/// One text: choices in order, some of them pushed, some taken back.
void compare_choices(std::uint64_t seed, std::size_t vocab) {
  Draw draw(seed);
  const auto mask = random_mask(draw, vocab);
  Sampler sampler(std::make_shared<Chooser>(vocab, some_kernels(seed), mask));
  DefinedSampler defined(vocab, mask.get());
  const SamplingParams params = random_params(draw, vocab);
  const auto prompt = draw.tokens(vocab, 20);
  const auto ends = draw.tokens(vocab, 3);
  const std::size_t min_tokens = draw.one_in(4) ? draw.below(4) : 0;
  sampler.reset(params, prompt, min_tokens, ends);
  defined.reset(params, prompt, min_tokens, ends);
  const auto logits = random_logits(draw, vocab);
  std::vector<TokenId> output;
  const std::size_t choices = vocab > 5000 ? 3 : 8;
  for (std::size_t i = 0; i < choices; ++i) {
    const std::size_t position = prompt.size() + output.size();
    const TokenId expected = defined.choose(logits, position);
    ASSERT_EQ(sampler.choose(logits, position), expected) << text_of(params, vocab, seed);
    if (!output.empty() && draw.one_in(4)) {
      sampler.pop(output.back());
      defined.pop(output.back());
      output.pop_back();
    } else {
      output.push_back(expected >= 0 && draw.one_in(2) ? expected : draw.token(vocab));
      sampler.push(output.back());
      defined.push(output.back());
    }
  }
}

/// Without what is not a number: the definition knows no such thing.
void compare_logprobs(std::uint64_t seed, std::size_t vocab) {
  Draw draw(seed);
  Chooser chooser(vocab, some_kernels(seed));
  auto logits = random_logits(draw, vocab);
  for (float& logit : logits) {
    logit = std::isnan(logit) ? -kInf : logit;
  }
  const TokenId token = draw.token(vocab);
  const std::size_t top = draw.below(21);
  float expected = 0.0F;
  float found = 0.0F;
  TopLogprobs expected_top;
  TopLogprobs found_top;
  defined_logprobs(logits, token, top, &expected, &expected_top);
  chooser.logprobs(logits, token, top, &found, &found_top);
  const auto bits = [](float x) { return std::isnan(x) ? 0U : std::bit_cast<std::uint32_t>(x); };
  const auto where = "SPEL_SAMPLER_SEED=" + std::to_string(seed) + ", " + std::to_string(vocab);
  ASSERT_EQ(bits(found), bits(expected)) << where << ": " << found << ", " << expected;
  ASSERT_EQ(found_top.size(), expected_top.size()) << where;
  for (std::size_t i = 0; i < found_top.size(); ++i) {
    ASSERT_EQ(found_top[i].token, expected_top[i].token) << where << ", place " << i;
    ASSERT_EQ(bits(found_top[i].logprob), bits(expected_top[i].logprob))
        << where << ", place " << i;
  }
}

std::uint64_t number_from(const char* variable, std::uint64_t fallback) {
  const char* text = std::getenv(variable);
  return text == nullptr ? fallback : std::strtoull(text, nullptr, 10);
}

/// Most cases are small; each thousandth has the whole of a large vocabulary.
std::size_t vocabulary_of(std::uint64_t seed) {
  Draw draw(seed ^ 0x5eedULL);
  if (seed % 1000 == 0) {
    return draw.one_in(2) ? kLargeVocabulary : 1 + draw.below(kLargeVocabulary);
  }
  if (seed % 50 == 0) {
    return 1 + draw.below(6000);
  }
  return draw.one_in(4) ? 1 + draw.below(700) : 1 + draw.below(130);
}

constexpr std::uint64_t kCases = 25000;

TEST(SamplerDefinition, EveryChoiceIsTheDefinitions) {
  const std::uint64_t first = number_from("SPEL_SAMPLER_SEED", 1);
  const std::uint64_t cases = number_from("SPEL_SAMPLER_CASES", kCases);
  for (std::uint64_t seed = first; seed < first + cases; ++seed) {
    compare_choices(seed, vocabulary_of(seed));
    if (HasFatalFailure()) {
      return;
    }
  }
}

TEST(SamplerDefinition, EveryLogprobIsTheDefinitions) {
  const std::uint64_t first = number_from("SPEL_SAMPLER_SEED", 1);
  const std::uint64_t cases = number_from("SPEL_SAMPLER_CASES", kCases) / 2;
  for (std::uint64_t seed = first; seed < first + cases; ++seed) {
    compare_logprobs(seed, vocabulary_of(seed));
    if (HasFatalFailure()) {
      return;
    }
  }
}

}  // namespace
}  // namespace spel::engine
