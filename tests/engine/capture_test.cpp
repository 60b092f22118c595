// Captures: what they hand over, and that they leave no trace in the sequences they run between.
#include <atomic>
#include <chrono>
#include <cmath>
#include <future>
#include <gtest/gtest.h>
#include <thread>

#include "config/base/error.h"
#include "support.h"

namespace spel::engine::testing {
namespace {

struct CaptureRig {
  CaptureRig()
      : rig(random_model(odd_shape(), 11, WeightsDtype::kBf16), kernels::Kernels::select().isa(), 1,
            {}),
        engine(config(), std::move(rig.target), testing::drafting(std::move(rig.draft)),
               byte_tokenizer(odd_shape().vocab_size)) {}

  static EngineConfig config() {
    EngineConfig result;
    result.sequences = 2;
    result.calibrate = false;
    return result;
  }
  CaptureOutcome capture(CaptureRequest request) {
    auto promise = std::make_shared<std::promise<CaptureOutcome>>();
    auto outcome = promise->get_future();
    EXPECT_EQ(
        engine.capture(std::move(request),
                       [promise](CaptureOutcome done) { promise->set_value(std::move(done)); }),
        SubmitStatus::kAccepted);
    return outcome.get();
  }

  HybridRig rig;
  Engine engine;
};

GenerationRequest request_of(std::uint64_t seed) {
  GenerationRequest request;
  request.prompt = random_tokens(40, odd_shape().vocab_size, seed);
  request.max_tokens = 48;
  request.logprobs = 2;
  request.ignore_eos = true;
  request.sampling.seed = seed;
  return request;
}

TEST(Capture, HandsOverUnitVectorsOfTheTokensAskedFor) {
  CaptureRig rig;
  const CaptureShape shape = rig.engine.capture_shape();
  ASSERT_GT(shape.channels, 0U);
  CaptureRequest request;
  request.tokens = random_tokens(200, odd_shape().vocab_size, 3);
  request.queries = true;
  const CaptureOutcome all = rig.capture(request);
  request.keep = 5;
  const CaptureOutcome last = rig.capture(request);
  ASSERT_TRUE(all.error.empty());
  const std::size_t width = shape.channels * shape.head_dim;
  ASSERT_EQ(all.capture.tokens, 200U);
  ASSERT_EQ(all.capture.keys.size(), 200 * width);
  ASSERT_EQ(last.capture.keys.size(), 5 * width);
  ASSERT_EQ(last.capture.queries.size(), 5 * width);
  EXPECT_TRUE(std::equal(last.capture.keys.begin(), last.capture.keys.end(),
                         all.capture.keys.end() - static_cast<std::ptrdiff_t>(5 * width)));
  for (std::size_t i = 0; i < 5 * shape.channels; ++i) {
    float squares = 0.0F;
    for (std::size_t d = 0; d < shape.head_dim; ++d) {
      squares +=
          last.capture.keys[i * shape.head_dim + d] * last.capture.keys[i * shape.head_dim + d];
    }
    EXPECT_NEAR(squares, 1.0F, 1e-3F);
  }
}

TEST(Capture, LeavesNoTraceInRunningSequences) {
  CaptureRig rig;
  const Answer alone = generate(rig.engine, request_of(5));
  std::atomic<bool> stop{false};
  std::atomic<int> captures{0};
  std::thread other([&] {
    while (!stop) {
      CaptureRequest request;
      request.tokens = random_tokens(150, odd_shape().vocab_size, 9);
      captures += rig.capture(std::move(request)).error.empty() ? 1 : 0;
    }
  });
  while (captures == 0) {
    std::this_thread::yield();
  }
  const Answer between = generate(rig.engine, request_of(5));
  stop = true;
  other.join();
  EXPECT_EQ(between.tokens, alone.tokens);
  EXPECT_EQ(between.logprobs, alone.logprobs);
  EXPECT_GT(rig.engine.stats().capture_tokens, 0U);
}

TEST(Capture, RefusesWhatItCannotRead) {
  CaptureRig rig;
  const auto ignore = [](CaptureOutcome) {};
  EXPECT_THROW((void)rig.engine.capture({}, ignore), Error);
  CaptureRequest outside;
  outside.tokens = {static_cast<TokenId>(odd_shape().vocab_size)};
  EXPECT_THROW((void)rig.engine.capture(outside, ignore), Error);
  CaptureRequest good;
  good.tokens = {1, 2, 3};
  rig.engine.begin_drain();
  EXPECT_EQ(rig.engine.capture(good, ignore), SubmitStatus::kDraining);
}

}  // namespace
}  // namespace spel::engine::testing
