// A decode step allocates nothing: counted, by replacing this program's operator new.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <gtest/gtest.h>
#include <memory>
#include <new>
#include <string>
#include <variant>
#include <vector>

#include "engine/engine.h"
#include "tests/engine/support.h"

namespace {

std::atomic<bool> counting{false};
std::atomic<std::size_t> allocations{0};
/// The thread that reads the answers may allocate: it stands for a session.
thread_local bool is_reader = false;

void* counted(std::size_t size, std::size_t alignment) {
  if (counting.load(std::memory_order_relaxed) && !is_reader) {
    allocations.fetch_add(1, std::memory_order_relaxed);
  }
  const std::size_t rounded = (std::max<std::size_t>(size, 1) + alignment - 1) / alignment;
  void* memory = std::aligned_alloc(alignment, rounded * alignment);
  if (memory == nullptr) {
    throw std::bad_alloc();
  }
  return memory;
}

}  // namespace

void* operator new(std::size_t size) { return counted(size, alignof(std::max_align_t)); }
void* operator new[](std::size_t size) { return counted(size, alignof(std::max_align_t)); }
void* operator new(std::size_t size, std::align_val_t alignment) {
  return counted(size, static_cast<std::size_t>(alignment));
}
void* operator new[](std::size_t size, std::align_val_t alignment) {
  return counted(size, static_cast<std::size_t>(alignment));
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete[](void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
void operator delete[](void* memory, std::size_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::align_val_t) noexcept { std::free(memory); }
void operator delete[](void* memory, std::align_val_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t, std::align_val_t) noexcept { std::free(memory); }
void operator delete[](void* memory, std::size_t, std::align_val_t) noexcept { std::free(memory); }

namespace spel::engine {
namespace {

using testing::Reader;

/// Small, so that the engine waits for the reader: the reader decides what is counted.
constexpr std::size_t kCapacity = limits::kSpecKMax + 4;
constexpr std::size_t kBefore = 24;    ///< Tokens of each answer read before counting …
constexpr std::size_t kCounted = 120;  ///< … and while counting.

void read_tokens(Reader& reader, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) {
    ASSERT_TRUE(std::holds_alternative<TokenEvent>(reader.next()));
  }
}

/// Runs the requests side by side and counts what every other thread allocates in mid-stream.
std::size_t allocations_while_decoding(const std::vector<GenerationRequest>& requests) {
  is_reader = true;
  const std::size_t threads = 2;
  EngineConfig config;
  config.sequences = requests.size();
  config.calibrate = false;
  ModelOptions model;
  model.max_batch_rows = config.batch_rows();
  testing::HybridRig rig(random_model(testing::odd_shape(), 5, WeightsDtype::kF32),
                         kernels::Kernels::select().isa(), threads, model);
  Engine engine(config, std::move(rig.target), testing::drafting(std::move(rig.draft)),
                testing::byte_tokenizer(101));
  std::vector<std::unique_ptr<Reader>> readers;
  for (const GenerationRequest& request : requests) {
    readers.push_back(std::make_unique<Reader>(kCapacity));
    EXPECT_EQ(engine.submit(request, readers.back()->stream()), SubmitStatus::kAccepted);
  }
  // In small turns, so that the sequences stay in company.
  const auto read_all = [&](std::size_t tokens) {
    for (std::size_t i = 0; i < tokens; i += 4) {
      for (const auto& reader : readers) {
        read_tokens(*reader, 4);
      }
    }
  };
  read_all(kBefore);
  allocations = 0;
  counting = true;
  read_all(kCounted);
  counting = false;
  engine.cancel_all();
  EXPECT_TRUE(engine.wait_idle(Clock::now() + std::chrono::seconds(30)));
  return allocations;
}

GenerationRequest request(std::uint64_t seed, float temperature, GovernorKind governor) {
  GenerationRequest request;
  request.prompt = testing::random_tokens(30, 101, seed);
  request.max_tokens = 400;
  request.ignore_eos = true;
  request.sampling.temperature = temperature;
  request.sampling.seed = seed;
  request.speculation.governor = governor;
  return request;
}

TEST(Allocation, CountsWhatIsAllocated) {
  is_reader = false;
  allocations = 0;
  counting = true;
  const auto owned = std::make_unique<std::vector<int>>(100);
  counting = false;
  EXPECT_EQ(owned->size(), 100U);
  EXPECT_EQ(allocations, 2U);
}

TEST(Allocation, ADecodeStepAllocatesNothing) {
  for (const GovernorKind governor :
       {GovernorKind::kOff, GovernorKind::kTrip, GovernorKind::kAdaptive}) {
    SCOPED_TRACE(std::string(name_of(governor)));
    GenerationRequest plain = request(1, 0.0F, governor);
    plain.speculation.enabled = false;
    GenerationRequest penalised = request(3, 0.7F, governor);
    penalised.sampling.presence_penalty = 0.5F;
    penalised.sampling.frequency_penalty = 0.5F;
    penalised.sampling.repetition_penalty = 1.1F;
    penalised.sampling.logit_bias = {{5, 1.0F}};
    penalised.sampling.thinking =
        ThinkingBudget{.tokens_max = 60, .begin = {}, .end = 3, .close = {1, 2, 3}};
    GenerationRequest filtered = request(4, 1.0F, governor);
    filtered.sampling.top_k = 20;
    filtered.sampling.top_p = 0.9F;
    filtered.sampling.min_p = 0.01F;
    filtered.speculation.k = limits::kSpecKMax;
    GenerationRequest watched = request(5, 0.0F, governor);
    watched.stop = {"never in this text", "nor this"};
    watched.logprobs = 5;
    EXPECT_EQ(allocations_while_decoding(
                  {plain, request(2, 0.0F, governor), penalised, filtered, watched}),
              0U);
  }
}

}  // namespace
}  // namespace spel::engine
