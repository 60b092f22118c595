#include "engine/tools/engine_run.h"

#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <optional>
#include <utility>
#include <variant>

#include "config/base/error.h"

namespace spel::engine::tools {
namespace {

constexpr std::size_t kStreamEvents = 256;

}  // namespace

struct PendingRun::Signal {
  std::mutex mutex;
  std::condition_variable changed;
  std::uint64_t count = 0;
};

PendingRun::PendingRun(Engine& engine, GenerationRequest request)
    : signal_(std::make_shared<Signal>()),
      stream_(std::make_shared<TokenStream>(kStreamEvents, [signal = signal_] {
        const std::lock_guard lock(signal->mutex);
        ++signal->count;
        signal->changed.notify_one();
      })) {
  if (engine.submit(std::move(request), stream_) != SubmitStatus::kAccepted) {
    throw Error(ErrorCode::kUnavailable, "the engine's queue is full");
  }
}

Generated PendingRun::wait(const OnToken& on_token) {
  Generated generated;
  while (true) {
    std::uint64_t seen = 0;
    {
      const std::lock_guard lock(signal_->mutex);
      seen = signal_->count;
    }
    std::optional<StreamEvent> event = stream_->try_pop();
    if (!event) {
      std::unique_lock lock(signal_->mutex);
      signal_->changed.wait(lock, [&] { return signal_->count != seen; });
      continue;
    }
    if (const auto* token = std::get_if<TokenEvent>(&*event)) {
      generated.tokens.push_back(token->token);
      if (on_token) {
        on_token(*token);
      }
    } else if (auto* finish = std::get_if<FinishEvent>(&*event)) {
      generated.finish = std::move(*finish);
      if (generated.finish.reason == FinishReason::kError) {
        throw Error(ErrorCode::kInternal, "the engine failed: " + generated.finish.error);
      }
      return generated;
    }
  }
}

Generated run_request(Engine& engine, GenerationRequest request, const OnToken& on_token) {
  return PendingRun(engine, std::move(request)).wait(on_token);
}

}  // namespace spel::engine::tools
