// The signals that end a server.
#pragma once

#include <chrono>
#include <condition_variable>
#include <csignal>
#include <mutex>
#include <thread>

namespace spel::server {

/// Takes SIGINT, SIGTERM and SIGHUP on a thread of its own, so that the second of them ends the
/// process within a second whatever the other threads hang on: a drain, a model being read, a
/// destructor. SIGHUP is left alone where it was ignored at the start, as under nohup.
///
/// Thread-safe. Made before any other thread, destroyed after all of them.
class StopSignals {
 public:
  /// Blocks the signals for this thread and those it starts from now on. SIGPIPE and SIGXFSZ are
  /// ignored for good: the write that causes them fails instead. Throws ThreadError.
  StopSignals();
  ~StopSignals();
  StopSignals(const StopSignals&) = delete;
  StopSignals& operator=(const StopSignals&) = delete;

  /// Waits for the first signal, or for stop(). Returns its number; 0: stop().
  [[nodiscard]] int wait();
  /// As if a signal had come.
  void stop();

  /// A second signal has come: what would be nice to wait for is not waited for any more.
  [[nodiscard]] bool hurried();
  /// Waits until then, or for a second signal.
  void wait_hurried(std::chrono::steady_clock::time_point deadline);

  /// Whatever is still running after `patience` does not keep the process: it ends with `status`.
  void end_within(std::chrono::milliseconds patience, int status);

  /// From a second signal to the end that nothing can put off.
  static constexpr std::chrono::milliseconds kHurriedEnd{600};

 private:
  using Clock = std::chrono::steady_clock;

  void run();
  void on_signal(int number);
  /// For poll(): until the process has to be gone; -1: no such time.
  [[nodiscard]] int patience_ms();

  sigset_t signals_{};
  int signal_fd_ = -1;
  int wake_fd_ = -1;  ///< Something below has changed.

  std::mutex mutex_;  ///< Guards what follows.
  std::condition_variable changed_;
  bool stopped_ = false;
  bool finished_ = false;
  int first_ = 0;
  bool hurried_ = false;
  Clock::time_point end_at_ = Clock::time_point::max();
  int status_ = 0;

  std::thread thread_;
};

}  // namespace spel::server
