// Every figure the server gives of itself: one table from which /v1/stats and /metrics come.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "config/base/names.h"
#include "engine/engine.h"
#include "server/lifecycle.h"
#include "server/process_stats.h"

namespace prometheus {
struct MetricFamily;
}

namespace spel::server {

/// What is known at one moment, so that the figures of a page agree with each other: started = ok +
/// error + cancelled + running + waiting.
struct Snapshot {
  Phase phase = Phase::kLoading;
  const Backend* backend = nullptr;  ///< Null while the model is loading.
  engine::EngineStats engine;        ///< Zero until then: the same series as after.
  ProcessStats process;

  // For /v1/stats alone.
  double uptime_seconds = 0.0;
  std::size_t k = 0;  ///< Where a request does not say.
  GovernorKind governor = GovernorKind::kAdaptive;
  std::size_t connections = 0;
  std::uint64_t http_requests = 0;
  std::uint64_t unknown_fields = 0;
};
[[nodiscard]] Snapshot take_snapshot(const Lifecycle& lifecycle);

/// The body of /v1/stats; the model is there.
[[nodiscard]] std::string stats_body(const Snapshot& snapshot);
[[nodiscard]] std::vector<prometheus::MetricFamily> metric_families(const Snapshot& snapshot);

}  // namespace spel::server
