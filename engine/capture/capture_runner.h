// Runs captures on the engine thread, a piece at a time between the steps of the batch.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <vector>

#include "engine/capture/capture.h"
#include "engine/model/transformer.h"

namespace spel::engine {

/// Copies what a pass over one item computes into a capture.
class CaptureObserver final : public ForwardObserver {
 public:
  explicit CaptureObserver(const ModelSpec& spec);

  [[nodiscard]] const CaptureShape& shape() const noexcept { return shape_; }
  /// Of the next pass's tokens, leaves out the first `skip`. Null: looks away.
  void aim(Capture* capture, std::size_t skip, bool queries);
  void on_recurrent(std::size_t layer, std::size_t item, std::size_t tokens, const float* qkv,
                    std::size_t row_stride) override;

 private:
  CaptureShape shape_;
  struct Layer {
    std::size_t heads = 0;
    std::size_t first_channel = 0;
  };
  std::vector<Layer> layers_;
  Capture* capture_ = nullptr;
  std::size_t skip_ = 0;
  bool queries_ = false;
};

/// submit(), cancel_all() and the counters are thread-safe; step() is the engine thread's.
class CaptureRunner {
 public:
  /// `model` may be null: then nothing can be captured.
  explicit CaptureRunner(HybridCausalModel* model);
  ~CaptureRunner();
  CaptureRunner(const CaptureRunner&) = delete;
  CaptureRunner& operator=(const CaptureRunner&) = delete;

  [[nodiscard]] CaptureShape shape() const noexcept;
  /// False if too many wait.
  [[nodiscard]] bool submit(CaptureRequest request, CaptureDone done);
  /// What waits and what runs ends with an error, at the next step().
  void cancel_all() noexcept { cancel_ = true; }
  /// Reads up to kPieceTokens. False if there was nothing to do.
  bool step();
  /// Ends everything now.
  void fail_all(const std::string& why);

  [[nodiscard]] std::uint64_t tokens() const noexcept { return tokens_; }
  [[nodiscard]] double seconds() const noexcept { return seconds_; }
  [[nodiscard]] std::size_t state_bytes() const noexcept { return state_ ? state_->bytes() : 0; }

  /// A running sequence waits for no more than this.
  static constexpr std::size_t kPieceTokens = 128;
  static constexpr std::size_t kWaitingMax = 64;

 private:
  struct Job {
    CaptureRequest request;
    CaptureDone done;
    Capture capture;
    std::size_t fed = 0;
  };

  [[nodiscard]] bool take_next();
  void read_piece();

  HybridCausalModel* model_;
  std::unique_ptr<CaptureObserver> observer_;
  std::unique_ptr<SequenceState> state_;  ///< Its own: the batch's states are never touched.
  std::unique_ptr<Job> job_;              ///< Being read.

  std::mutex mutex_;
  std::deque<Job> waiting_;
  std::atomic<bool> cancel_{false};
  std::atomic<std::uint64_t> tokens_{0};
  std::atomic<double> seconds_{0.0};
};

}  // namespace spel::engine
