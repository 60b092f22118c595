// The engine's counters and the process's figures as metric families.
#pragma once

#include <prometheus/collectable.h>
#include <vector>

#include "server/lifecycle.h"

namespace spel::server {

/// Built from one snapshot of the engine's statistics for each scrape, so that the figures of a
/// page agree with each other: started = ok + error + cancelled + running + waiting.
class EngineMetrics final : public prometheus::Collectable {
 public:
  explicit EngineMetrics(const Lifecycle& lifecycle) : lifecycle_(lifecycle) {}

  [[nodiscard]] std::vector<prometheus::MetricFamily> Collect() const override;

 private:
  const Lifecycle& lifecycle_;
};

}  // namespace spel::server
