// Threads for work that may block.
#pragma once

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "config/base/thread.h"

namespace spel::server {

/// In place of Asio's thread_pool, whose constructor waits for ever where its second thread cannot
/// be started. Thread-safe but for join(). Work that throws ends the process.
class Workers {
 public:
  /// `name` says what they do. Throws ThreadError; none is left then.
  Workers(std::size_t threads, const std::string& name)
      : io_(static_cast<int>(threads)), work_(boost::asio::make_work_guard(io_)) {
    try {
      for (std::size_t i = 0; i < threads; ++i) {
        threads_.push_back(start_thread("a thread for " + name, [this] { io_.run(); }));
      }
    } catch (...) {
      join();
      throw;
    }
  }
  ~Workers() { join(); }
  Workers(const Workers&) = delete;
  Workers& operator=(const Workers&) = delete;

  template <typename Work>
  void post(Work&& work) {
    boost::asio::post(io_, std::forward<Work>(work));
  }

  /// Runs what is queued, then ends the threads. Idempotent.
  void join() {
    work_.reset();
    for (std::thread& thread : threads_) {
      thread.join();
    }
    threads_.clear();
  }

 private:
  boost::asio::io_context io_;
  boost::asio::executor_work_guard<boost::asio::io_context::executor_type> work_;
  std::vector<std::thread> threads_;
};

}  // namespace spel::server
