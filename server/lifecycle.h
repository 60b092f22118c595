// Loading, ready, leaving, draining: one state for all endpoints.
#pragma once

#include <atomic>
#include <memory>
#include <string_view>
#include <utility>

#include "server/backend.h"

namespace spel::server {

enum class Phase {
  kLoading,
  kReady,
  kLeaving,   ///< Works as before and says that it is draining: balancers are to look elsewhere.
  kDraining,  ///< Takes no more work.
};

[[nodiscard]] constexpr std::string_view phase_name(Phase phase) {
  switch (phase) {
    case Phase::kLoading:
      return "loading";
    case Phase::kReady:
      return "ready";
    case Phase::kLeaving:
    case Phase::kDraining:
      break;
  }
  return "draining";
}

/// Thread-safe. The backend comes once and stays.
class Lifecycle {
 public:
  [[nodiscard]] Phase phase() const noexcept { return phase_.load(std::memory_order_acquire); }
  /// Requests that need the model are taken.
  [[nodiscard]] bool takes_work() const noexcept {
    const Phase now = phase();
    return now == Phase::kReady || now == Phase::kLeaving;
  }

  /// Nullptr while loading.
  [[nodiscard]] const Backend* backend() const noexcept {
    return published_.load(std::memory_order_acquire);
  }

  /// At most once, by one thread. Draining stays draining.
  void set_ready(std::unique_ptr<const Backend> backend) {
    backend_ = std::move(backend);
    published_.store(backend_.get(), std::memory_order_release);
    Phase loading = Phase::kLoading;
    (void)phase_.compare_exchange_strong(loading, Phase::kReady);
  }
  /// From ready only: false otherwise.
  [[nodiscard]] bool set_leaving() noexcept {
    Phase ready = Phase::kReady;
    return phase_.compare_exchange_strong(ready, Phase::kLeaving);
  }
  void set_draining() noexcept { phase_.store(Phase::kDraining, std::memory_order_release); }

 private:
  std::atomic<Phase> phase_{Phase::kLoading};
  std::unique_ptr<const Backend> backend_;
  std::atomic<const Backend*> published_{nullptr};
};

}  // namespace spel::server
