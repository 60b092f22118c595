// What the engine thread has learnt and counted.
#pragma once

#include "engine/schedule/recent_rounds.h"
#include "engine/speculate/acceptance.h"
#include "engine/speculate/cost_model.h"
#include "engine/speculate/governor.h"
#include "engine/stats.h"

namespace spel::engine {

/// Engine thread only.
struct Books {
  CostModel costs;
  AcceptanceEstimate lately = unknown_acceptance();  ///< Over all requests.
  RecentRounds recent;
  EngineStats stats;  ///< Counters and gauges of steps and requests; the queue's are the caller's.
};

}  // namespace spel::engine
