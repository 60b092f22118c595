#include "server/shutdown.h"

#include <csignal>
#include <cstdlib>
#include <ctime>
#include <thread>

namespace spel::server {
namespace {

constexpr std::chrono::milliseconds kPoll{20};
/// For streams that were cancelled to write their last event.
constexpr std::chrono::milliseconds kCancelGrace{2000};
/// After a second signal: for the last events to be written, and for everything to be gone.
constexpr std::chrono::milliseconds kHurriedGrace{250};
constexpr std::chrono::milliseconds kHurriedEnd{600};

sigset_t shutdown_signals() {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGINT);
  sigaddset(&set, SIGTERM);
  return set;
}

/// True if a signal came within `patience`.
bool take_signal(std::chrono::milliseconds patience) {
  const sigset_t set = shutdown_signals();
  const std::timespec timeout{.tv_sec = 0, .tv_nsec = patience.count() * 1'000'000};
  return sigtimedwait(&set, nullptr, &timeout) > 0;
}

enum class Waited { kDrained, kTimedOut, kSignal };

Waited wait_drained(App& app, std::chrono::milliseconds patience) {
  const Clock::time_point deadline = Clock::now() + patience;
  while (!app.wait_drained(Clock::now())) {
    if (Clock::now() >= deadline) {
      return Waited::kTimedOut;
    }
    if (take_signal(kPoll)) {
      return Waited::kSignal;
    }
  }
  return Waited::kDrained;
}

/// Whatever is still running then, a pass or a destructor, does not keep the process.
void end_process_after(std::chrono::milliseconds delay, int signal) {
  std::thread([delay, signal] {
    std::this_thread::sleep_for(delay);
    std::_Exit(128 + signal);
  }).detach();
}

/// Ends what does not end by itself. False: something is stuck.
bool end_now(App& app, std::chrono::milliseconds grace) {
  app.cancel_generations();
  if (wait_drained(app, grace) == Waited::kDrained) {
    return true;
  }
  app.close_connections();
  return wait_drained(app, kHurriedGrace) == Waited::kDrained;
}

}  // namespace

void block_shutdown_signals() {
  const sigset_t set = shutdown_signals();
  pthread_sigmask(SIG_BLOCK, &set, nullptr);
  std::signal(SIGPIPE, SIG_IGN);
}

int wait_and_shut_down(App& app) {
  const sigset_t set = shutdown_signals();
  int number = 0;
  while (sigwait(&set, &number) != 0) {
  }
  app.log().event(LogLevel::kInfo, "shutting down: draining; a second signal ends at once",
                  {{"signal", std::int64_t{number}}});
  app.begin_drain();
  const Waited waited = wait_drained(app, app.config().drain_timeout);
  if (waited == Waited::kSignal) {
    end_process_after(kHurriedEnd, number);
  }
  const bool ended = waited == Waited::kDrained ||
                     end_now(app, waited == Waited::kSignal ? kHurriedGrace : kCancelGrace);
  if (!ended) {
    // A pass that does not return cannot be joined.
    app.log().event(LogLevel::kError, "something did not end in time: leaving it behind");
    std::_Exit(EXIT_FAILURE);
  }
  app.stop();
  app.log().event(LogLevel::kInfo, "stopped");
  return EXIT_SUCCESS;
}

}  // namespace spel::server
