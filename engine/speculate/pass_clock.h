// How long work on this thread took, the time it was pushed aside for others left out.
#pragma once

#include <ctime>
#include <sys/resource.h>

#include "engine/types.h"

namespace spel::engine {

/// On a busy machine the system takes the processor away in the middle of a pass, for longer than
/// the pass lasts: that says nothing about the pass. Where that happened seconds() is the thread's
/// processor time, otherwise the time that went by, waiting for helpers included. Starts when
/// constructed; to be read on the same thread.
class PassClock {
 public:
  PassClock() : began_(Clock::now()), cpu_(cpu_seconds()), pushed_aside_(times_pushed_aside()) {}

  [[nodiscard]] double seconds() const {
    return times_pushed_aside() == pushed_aside_ ? seconds_between(began_, Clock::now())
                                                 : cpu_seconds() - cpu_;
  }

 private:
  static double cpu_seconds() {
    timespec now{};
    (void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
  }
  static long times_pushed_aside() {
#ifdef RUSAGE_THREAD
    rusage usage{};
    (void)getrusage(RUSAGE_THREAD, &usage);
    return usage.ru_nivcsw;
#else
    return 0;
#endif
  }

  Clock::time_point began_;
  double cpu_;
  long pushed_aside_;
};

/// After a pass of many rows the machine is slow for some milliseconds, up to twice: what a small
/// pass takes then says nothing about its row count. A stream begins with one (the prompt), and so
/// does drafting (what the draft has to catch up with).
class Settling {
 public:
  /// A pass of `rows` of either model ends.
  void passed(double rows, Clock::time_point now) {
    if (rows >= kManyRows) {
      rows_ = rows;
      until_ = now + kSettleTime;
    }
  }
  /// Whether a pass of `rows` that begins now is a measurement.
  [[nodiscard]] bool settled(double rows, Clock::time_point now) const {
    return now >= until_ || 2.0 * rows >= rows_;
  }

 private:
  static constexpr double kManyRows = 16.0;
  static constexpr std::chrono::milliseconds kSettleTime{10};

  double rows_ = 0.0;
  Clock::time_point until_;
};

}  // namespace spel::engine
