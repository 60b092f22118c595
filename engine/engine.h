// The facade: submit, cancel (through the stream), drain, read statistics.
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "config/base/limits.h"
#include "engine/capture.h"
#include "engine/model/causal_model.h"
#include "engine/request.h"
#include "engine/token_stream.h"

namespace spel::engine {

struct EngineConfig {
  std::size_t sequences = 8;        ///< Running at once; their state is allocated at start.
  std::size_t queue_capacity = 64;  ///< Waiting beyond those.
  std::size_t prefill_chunk = 128;  ///< Prompt tokens per step, over all sequences.
  std::size_t k_max = limits::kSpecKMax;
  std::size_t prefix_cache_entries = 4;  ///< Sequence states kept for reuse; 0: none.
  bool calibrate = true;                 ///< Measure what passes cost before the first request.

  /// Token rows of the largest step: what the models' max_batch_rows must hold.
  [[nodiscard]] std::size_t batch_rows() const { return sequences * (k_max + 1) + prefill_chunk; }
};

enum class SubmitStatus {
  kAccepted,
  kQueueFull,  ///< Retry later.
  kDraining,   ///< Shutting down.
};

/// Monotone since start unless said; one consistent snapshot.
struct EngineStats {
  std::uint64_t requests_submitted = 0;              ///< Accepted into the queue.
  std::uint64_t requests_rejected = 0;               ///< Queue full or draining.
  std::array<std::uint64_t, 5> requests_finished{};  ///< By FinishReason.
  std::size_t running = 0;                           ///< Now.
  std::size_t waiting = 0;                           ///< Now.
  std::uint64_t prompt_tokens = 0;                   ///< Prefilled (cached ones not counted).
  std::uint64_t cached_tokens = 0;
  std::uint64_t generation_tokens = 0;  ///< Emitted, those of cancelled requests included.
  std::uint64_t drafts = 0;             ///< Rounds with proposals.
  std::uint64_t plain_rounds = 0;       ///< Rounds without.
  std::uint64_t draft_tokens = 0;       ///< Proposed.
  std::uint64_t accepted_tokens = 0;    ///< Accepted and emitted.
  std::uint64_t discarded_tokens = 0;   ///< Never judged: the output had ended before them.
  std::array<std::uint64_t, limits::kSpecKMax> accepted_by_position{};
  std::uint64_t trips = 0;
  std::uint64_t resumes = 0;
  std::uint64_t steps = 0;
  double prefill_seconds = 0.0;  ///< Spent in passes, by kind of pass.
  double draft_seconds = 0.0;
  double verify_seconds = 0.0;
  double plain_seconds = 0.0;
  double ar_seconds_per_token = 0.0;  ///< Now: the unit of c and v.
  double c = 0.0;                     ///< Now.
  double v = 0.0;                     ///< Now, at v_tokens tokens a verification.
  std::size_t v_tokens = 0;
  double acceptance = 0.0;         ///< Now, over the last completed rounds.
  double tokens_per_second = 0.0;  ///< Now, over the last seconds of decoding.
  std::size_t state_bytes = 0;     ///< Sequence states and prefix cache, allocated.
  std::size_t prefix_entries = 0;
  std::uint64_t capture_tokens = 0;  ///< Read by captures, outside the batch.
  double capture_seconds = 0.0;
};

/// Owns the engine thread, which owns the scheduler, the sequences and their state. All public
/// functions are thread-safe. Destruction cancels what is left and joins.
class Engine {
 public:
  /// `draft` may be null: everything is then decoded plainly and the receipts say so.
  Engine(const EngineConfig& config, std::unique_ptr<CausalModel> target,
         std::unique_ptr<CausalModel> draft, std::shared_ptr<const class Tokenizer> tokenizer);
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
