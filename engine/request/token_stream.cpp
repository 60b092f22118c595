#include "engine/request/token_stream.h"

#include <cassert>
#include <utility>

namespace spel::engine {
namespace {

constexpr std::size_t kUncountedEvents = 2;  // A PromptEvent and a FinishEvent.

// The places of a stream are as large as its largest event: alternatives kept in place cost
// nothing.
static_assert(sizeof(TokenEvent) <= sizeof(FinishEvent));

}  // namespace

TokenStream::TokenStream(std::size_t capacity, std::function<void()> on_ready)
    : capacity_(capacity), on_ready_(std::move(on_ready)), ring_(capacity + kUncountedEvents) {}

std::optional<StreamEvent> TokenStream::try_pop() {
  std::optional<StreamEvent> event;
  bool credit_returned = false;
  {
    const std::lock_guard lock(mutex_);
    if (size_ == 0) {
      return std::nullopt;
    }
    event = std::move(ring_[head_]);
    head_ = (head_ + 1) % ring_.size();
    --size_;
    // Wake the engine once there is room for a whole round again, not for every token read.
    if (starved_ && size_ * 2 <= capacity_) {
      starved_ = false;
      credit_returned = true;
    }
  }
  if (credit_returned) {
    notify_credit();
  }
  return event;
}

void TokenStream::cancel() {
  if (!cancelled_.exchange(true, std::memory_order_acq_rel)) {
    notify_credit();
  }
}

void TokenStream::set_on_credit(std::function<void()> on_credit) {
  const std::lock_guard lock(mutex_);
  on_credit_ = std::move(on_credit);
}

void TokenStream::notify_credit() {
  std::function<void()> callback;
  {
    const std::lock_guard lock(mutex_);
    callback = on_credit_;
  }
  if (callback) {
    callback();
  }
}

bool TokenStream::park_unless(std::size_t needed) {
  const std::lock_guard lock(mutex_);
  const std::size_t free = size_ >= capacity_ ? 0 : capacity_ - size_;
  starved_ = free < needed;
  return !starved_;
}

void TokenStream::push(StreamEvent event) {
  const std::lock_guard lock(mutex_);
  assert(size_ < ring_.size());
  ring_[(head_ + size_) % ring_.size()] = std::move(event);
  ++size_;
  pushed_ = true;
}

void TokenStream::flush() {
  if (pushed_ && on_ready_) {
    on_ready_();  // If it throws, the next flush tells the reader.
  }
  pushed_ = false;
}

}  // namespace spel::engine
