#include "server/shutdown.h"

#include <cstdlib>

namespace spel::server {
namespace {

constexpr std::chrono::milliseconds kPoll{20};
/// For streams that were cancelled to write their last event.
constexpr std::chrono::milliseconds kCancelGrace{2000};
/// After a second signal: for the last events to be written.
constexpr std::chrono::milliseconds kHurriedGrace{250};
/// For threads to be joined and files to be closed.
constexpr std::chrono::milliseconds kEndGrace{5000};

/// True once every connection has ended; false at the deadline, or when `hurry` and a second signal
/// has come.
bool wait_drained(App& app, StopSignals& signals, std::chrono::milliseconds patience, bool hurry) {
  const Clock::time_point deadline = Clock::now() + patience;
  while (!app.wait_drained(std::min(deadline, Clock::now() + kPoll))) {
    if (Clock::now() >= deadline || (hurry && signals.hurried())) {
      return false;
    }
  }
  return true;
}

/// Ends what does not end by itself. False: something is stuck.
bool end_now(App& app, StopSignals& signals) {
  app.cancel_generations();
  if (!signals.hurried() && wait_drained(app, signals, kCancelGrace, true)) {
    return true;
  }
  if (wait_drained(app, signals, kHurriedGrace, false)) {
    return true;
  }
  app.close_connections();
  return wait_drained(app, signals, kHurriedGrace, false);
}

}  // namespace

int shut_down(App& app, StopSignals& signals) {
  if (app.config().drain_delay.count() > 0 && app.begin_leaving()) {
    app.log().event(LogLevel::kInfo, "not ready any more; still taking requests",
                    {{"drain_delay_ms", std::int64_t{app.config().drain_delay.count()}}});
    signals.wait_hurried(Clock::now() + app.config().drain_delay);
  }
  app.begin_drain();
  if (!wait_drained(app, signals, app.config().drain_timeout, true) && !end_now(app, signals)) {
    // A pass that does not return cannot be joined.
    app.log().event(LogLevel::kError, "something did not end in time: leaving it behind");
    app.log().close();
    std::_Exit(EXIT_FAILURE);
  }
  signals.end_within(kEndGrace, EXIT_FAILURE);
  app.stop();
  return EXIT_SUCCESS;
}

}  // namespace spel::server
