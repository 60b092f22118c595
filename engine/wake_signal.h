// How everybody else gets the engine thread's attention.
#pragma once

#include <condition_variable>
#include <mutex>

namespace spel::engine {

/// Wakes the engine thread. Streams hold it too, so it may outlive the engine.
class WakeSignal {
 public:
  void notify() {
    {
      const std::lock_guard lock(mutex);
      raised = true;
    }
    changed.notify_one();
  }

  std::mutex mutex;
  std::condition_variable changed;
  bool raised = false;
};

}  // namespace spel::engine
