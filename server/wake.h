// Wakes one coroutine that waits for something to happen on its strand.
#pragma once

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/basic_waitable_timer.hpp>
#include <boost/asio/wait_traits.hpp>
#include <utility>

#include "server/net.h"

namespace spel::server {

using Timer = net::basic_waitable_timer<Clock, net::wait_traits<Clock>, Executor>;

/// Single waiter. Strand only. A notify() before the wait is remembered, so nothing is lost.
class Wake {
 public:
  explicit Wake(const Executor& executor) : timer_(executor, Clock::time_point::max()) {}

  void notify() {
    raised_ = true;
    timer_.cancel();
  }

  /// False: nothing came before `deadline`.
  [[nodiscard]] Task<bool> wait_until(Clock::time_point deadline) {
    timer_.expires_at(deadline);
    while (!raised_ && Clock::now() < deadline) {
      (void)co_await timer_.async_wait(net::as_tuple(use_task));
    }
    timer_.expires_at(Clock::time_point::max());
    co_return std::exchange(raised_, false);
  }

  [[nodiscard]] Task<void> wait() {
    while (!raised_) {
      (void)co_await timer_.async_wait(net::as_tuple(use_task));
    }
    raised_ = false;
  }

 private:
  Timer timer_;
  bool raised_ = false;
};

}  // namespace spel::server
