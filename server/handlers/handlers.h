// The endpoints. Each file of this folder adds its own.
#pragma once

#include "config/server_config.h"
#include "server/lifecycle.h"
#include "server/log.h"
#include "server/metrics.h"
#include "server/router.h"

namespace spel::server {

/// What endpoints need; all of it outlives the router.
struct HandlerContext {
  const config::ServerConfig& config;
  const Lifecycle& lifecycle;
  Metrics& metrics;
  Log& log;
};

void add_routes(Router& router, const HandlerContext& context);

void add_completion_routes(Router& router, const HandlerContext& context);
void add_health_routes(Router& router, const HandlerContext& context);
void add_metrics_route(Router& router, const HandlerContext& context);
void add_model_routes(Router& router, const HandlerContext& context);
void add_notebank_routes(Router& router, const HandlerContext& context);
void add_page_routes(Router& router, const HandlerContext& context);
void add_stats_route(Router& router, const HandlerContext& context);
void add_tokenize_routes(Router& router, const HandlerContext& context);

}  // namespace spel::server
