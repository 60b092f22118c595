// The facade: submit, cancel (through the stream), drain, read statistics.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "engine/capture/capture.h"
#include "engine/engine_config.h"
#include "engine/model/causal_model.h"
#include "engine/request/request.h"
#include "engine/request/token_stream.h"
#include "engine/speculate/drafter.h"
#include "engine/stats.h"

namespace spel::engine {

enum class SubmitStatus {
  kAccepted,
  kQueueFull,  ///< Retry later.
  kDraining,   ///< Shutting down.
};

/// Owns the engine thread, which owns the scheduler, the sequences and their state. All public
/// functions are thread-safe. Destruction cancels what is left and joins.
class Engine {
 public:
  /// `drafter` may be null: everything is then decoded plainly and the receipts say so.
  Engine(const EngineConfig& config, std::unique_ptr<CausalModel> target,
         std::unique_ptr<Drafter> drafter, std::shared_ptr<const class Tokenizer> tokenizer);
  ~Engine();
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  /// Never blocks. On kAccepted exactly one FinishEvent will end the stream. Throws
  /// Error(kInvalidArgument) for a request that breaks the contract of request.h (a prompt longer
  /// than max_seq - 1 is one) and for a stream that cannot hold one round (k_max + 1 events).
  [[nodiscard]] SubmitStatus submit(GenerationRequest request, std::shared_ptr<TokenStream> stream);

  /// Reads a text outside the batch and hands over its native vectors. Never blocks; running
  /// sequences wait for at most 128 of its tokens at a time and end with the same bits. On
  /// kAccepted `done` will be called exactly once. Throws Error(kInvalidArgument) for tokens that
  /// break the contract of capture.h and for a model without recurrent layers.
  [[nodiscard]] SubmitStatus capture(CaptureRequest request, CaptureDone done);
  /// No channels: captures are refused.
  [[nodiscard]] CaptureShape capture_shape() const noexcept;

  /// No new requests from now on; those accepted go on.
  void begin_drain();
  /// True once nothing is running or waiting.
  [[nodiscard]] bool wait_idle(Clock::time_point deadline);
  /// Ends everything accepted with FinishReason::kCancelled within one step.
  void cancel_all();

  [[nodiscard]] EngineStats stats() const;
  [[nodiscard]] std::size_t vocab_size() const noexcept;
  [[nodiscard]] std::size_t max_seq() const noexcept;
  [[nodiscard]] const EngineConfig& config() const noexcept;
  [[nodiscard]] const Tokenizer& tokenizer() const noexcept;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace spel::engine
