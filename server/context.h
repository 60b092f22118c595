// What all sessions of a server share.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>

#include "config/server_config.h"
#include "server/auth.h"
#include "server/cors.h"
#include "server/host_check.h"
#include "server/lifecycle.h"
#include "server/log.h"
#include "server/metrics.h"
#include "server/router.h"
#include "server/task_group.h"

namespace spel::server {

/// Bytes of large request bodies held at once, over all sessions. Thread-safe.
class BodyBudget {
 public:
  explicit BodyBudget(std::size_t bytes) : left_(static_cast<std::int64_t>(bytes)) {}

  [[nodiscard]] bool take(std::size_t bytes) noexcept {
    const auto wanted = static_cast<std::int64_t>(bytes);
    if (left_.fetch_sub(wanted) >= wanted) {
      return true;
    }
    left_.fetch_add(wanted);
    return false;
  }
  void give_back(std::size_t bytes) noexcept { left_.fetch_add(static_cast<std::int64_t>(bytes)); }

 private:
  std::atomic<std::int64_t> left_;
};

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
