// Deadlines of one connection, kept by a single timer.
#pragma once

#include <algorithm>
#include <boost/asio/as_tuple.hpp>
#include <functional>
#include <memory>
#include <utility>

#include "server/wake.h"

namespace spel::server {

/// Setting a deadline is an assignment: no timer is touched per request. Every deadline set lies at
/// least `shortest` in the future, so sleeping for `shortest` at a time never misses one. Strand
/// only.
class Watchdog : public std::enable_shared_from_this<Watchdog> {
 public:
  static constexpr Clock::time_point kNever = Clock::time_point::max();

  Watchdog(const Executor& executor, Clock::duration shortest)
      : timer_(executor), shortest_(shortest) {}

  /// Calls `on_read` or `on_write`, again and again until the deadline is moved: the operation it
  /// is to end may not have begun yet. They may own what they touch, until stop().
  void start(std::function<void()> on_read, std::function<void()> on_write) {
    on_read_ = std::move(on_read);
    on_write_ = std::move(on_write);
    sleep();
  }

  /// Not from within the callbacks.
  void stop() {
    stopped_ = true;
    timer_.cancel();
    on_read_ = nullptr;
    on_write_ = nullptr;
  }

  Clock::time_point read_deadline = kNever;
  Clock::time_point write_deadline = kNever;

 private:
  static constexpr std::chrono::milliseconds kRepeat{20};

  void sleep() {
    const auto now = Clock::now();
    const auto next = std::min({read_deadline, write_deadline, now + shortest_});
    timer_.expires_at(std::max(next, now + kRepeat));
    timer_.async_wait([self = shared_from_this()](IoError) { self->on_timer(); });
  }

  void on_timer() {
    if (stopped_) {
      return;
    }
    const auto now = Clock::now();
    if (now >= write_deadline) {
      on_write_();
    } else if (now >= read_deadline) {
      on_read_();
    }
    sleep();
  }

  Timer timer_;
  const Clock::duration shortest_;
  std::function<void()> on_read_;
  std::function<void()> on_write_;
  bool stopped_ = false;
};

}  // namespace spel::server
