// Work that may block, away from the threads that serve connections.
#pragma once

#include <boost/asio/post.hpp>
#include <exception>
#include <memory>
#include <optional>
#include <type_traits>
#include <utility>

#include "server/wake.h"
#include "server/workers.h"

namespace spel::server {

/// A value that comes from another thread, once. deliver() and fail() from any thread; the rest on
/// the strand. Shared, because the waiting coroutine may be destroyed first.
template <typename T>
class Delivery : public std::enable_shared_from_this<Delivery<T>> {
 public:
  explicit Delivery(const Executor& executor) : strand_(executor), wake_(executor) {}

  void deliver(T value) {
    value_ = std::move(value);
    post();
  }
  void fail(std::exception_ptr error) {
    error_ = std::move(error);
    post();
  }

  [[nodiscard]] Task<T> take() {
    co_await wake_.wait();
    if (error_) {
      std::rethrow_exception(error_);
    }
    co_return std::move(*value_);
  }

 private:
  void post() {
    net::post(strand_, [self = this->shared_from_this()] { self->wake_.notify(); });
  }

  const Executor strand_;
  Wake wake_;
  std::optional<T> value_;
  std::exception_ptr error_;
};

/// Runs `work` on the pool and waits for its result on the strand; what it throws is thrown here.
/// `work` may refer to the caller's locals: the pool is joined before coroutines are destroyed.
template <typename Work>
[[nodiscard]] Task<std::invoke_result_t<Work>> offload(Workers& pool, const Executor& executor,
                                                       Work work) {
  auto delivery = std::make_shared<Delivery<std::invoke_result_t<Work>>>(executor);
  pool.post([delivery, work = std::move(work)]() mutable {
    try {
      delivery->deliver(work());
    } catch (...) {
      delivery->fail(std::current_exception());
    }
  });
  co_return co_await delivery->take();
}

}  // namespace spel::server
