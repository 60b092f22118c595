// What all sessions of a server share.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>

#include "config/server_config.h"
#include "server/auth.h"
#include "server/body_budget.h"
#include "server/cors.h"
#include "server/host_check.h"
#include "server/lifecycle.h"
#include "server/log.h"
#include "server/metrics.h"
#include "server/router.h"
#include "server/task_group.h"

namespace spel::server {

/// Names requests that bring no name of their own. Thread-safe.
class RequestIds {
 public:
  RequestIds();
  [[nodiscard]] std::string next();

 private:
  std::string prefix_;
  std::atomic<std::uint64_t> count_{0};
};

/// Built before listening. The parts are immutable or thread-safe.
struct ServerContext {
  const config::ServerConfig& config;
  const Router& router;
  ApiKeys& keys;
  const HostCheck& hosts;
  const Cors& cors;
  const Lifecycle& lifecycle;
  Metrics& metrics;
  Log& log;
  TaskGroup& sessions;
  BodyBudget& bodies;
  RequestIds& ids;
};

}  // namespace spel::server
