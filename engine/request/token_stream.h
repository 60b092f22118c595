// The bounded pipe from the engine thread to one reader.
#pragma once

#include <atomic>
#include <cstddef>
#include <functional>
#include <mutex>
#include <optional>
#include <variant>
#include <vector>

#include "engine/request/request.h"

namespace spel::engine {

using StreamEvent = std::variant<PromptEvent, TokenEvent, FinishEvent>;

/// One producer (the engine thread), one consumer. Bounded: when it is full the engine parks the
/// sequence until the consumer has read. The way back carries only a cancel flag and credit.
///
/// `on_ready` is called, from the engine thread and outside any lock, when events have become
/// readable; it must be quick and must not call back into the stream (post to an executor).
/// `on_credit` is set by the engine and called from the consumer's thread when a full stream has
/// room again or was cancelled.
class TokenStream {
 public:
  TokenStream(std::size_t capacity, std::function<void()> on_ready);

  [[nodiscard]] std::size_t capacity() const noexcept { return capacity_; }

  // Consumer.
  [[nodiscard]] std::optional<StreamEvent> try_pop();
  /// The reader has gone: the sequence is freed within one step. Idempotent, never blocks.
  void cancel();

  // Producer.
  void set_on_credit(std::function<void()> on_credit);
  /// True if at least `needed` TokenEvents fit; one PromptEvent and one FinishEvent fit beyond the
  /// capacity. If not, on_credit will be called once half of the
  /// stream has been read: the caller parks the sequence until then.
  [[nodiscard]] bool park_unless(std::size_t needed);
  void push(StreamEvent event);
  /// Calls on_ready if anything was pushed since the last flush.
  void flush();
  [[nodiscard]] bool cancelled() const noexcept {
    return cancelled_.load(std::memory_order_acquire);
  }

 private:
  void notify_credit();

  const std::size_t capacity_;
  const std::function<void()> on_ready_;
  mutable std::mutex mutex_;
  std::function<void()> on_credit_;
  std::vector<StreamEvent> ring_;  ///< Allocated once: pushing a token allocates nothing.
  std::size_t head_ = 0;
  std::size_t size_ = 0;
  bool starved_ = false;  ///< The producer saw no credit since the last pop.
  bool pushed_ = false;   ///< Producer thread only.
  std::atomic<bool> cancelled_{false};
};

}  // namespace spel::engine
