// Every figure the server gives of itself: one table from which /v1/stats and /metrics come.
#pragma once

#include <cstddef>
#include <string>

#include "config/base/names.h"
#include "engine/engine.h"
#include "server/lifecycle.h"
#include "server/metrics.h"
#include "server/process_stats.h"

namespace spel::server {

/// What is known at one moment, so that the figures of a page agree with each other: started = ok +
/// error + cancelled + running + waiting.
struct Snapshot {
  Phase phase = Phase::kLoading;
  const Backend* backend = nullptr;  ///< Null while the model is loading.
  engine::EngineStats engine;        ///< Zero until then: the same series as after.
  ProcessStats process;
  const Metrics& own;

  // For /v1/stats alone.
  double uptime_seconds = 0.0;
  std::size_t k = 0;  ///< Where a request does not say.
  GovernorKind governor = GovernorKind::kAdaptive;
};
[[nodiscard]] Snapshot take_snapshot(const Lifecycle& lifecycle, const Metrics& metrics);

/// The body of /v1/stats; the model is there.
[[nodiscard]] std::string stats_body(const Snapshot& snapshot);
/// The page /metrics, in Prometheus' text format: the table, and what Metrics times.
[[nodiscard]] std::string metrics_page(const Snapshot& snapshot);

}  // namespace spel::server
