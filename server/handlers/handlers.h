// The endpoints. Each file of this folder adds its own.
#pragma once

#include "config/server_config.h"
#include "server/body_budget.h"
#include "server/lifecycle.h"
#include "server/log.h"
#include "server/metrics.h"
#include "server/net.h"
#include "server/router.h"
#include "server/workers.h"

namespace spel::server {

/// Where large bodies are read and what their answers are charged to.
struct Reading {
  Workers& thread;      ///< One thread.
  BodyBudget& answers;  ///< Of what a request holds between its body and its answer's end.
};

/// What endpoints need; all of it outlives the router.
struct HandlerContext {
  const config::ServerConfig& config;
  const Lifecycle& lifecycle;
  Metrics& metrics;
  Log& log;
  Reading reading;
};

void add_completion_routes(Router& router, const HandlerContext& context);
void add_figure_routes(Router& router, const HandlerContext& context);
void add_health_routes(Router& router, const HandlerContext& context);
void add_model_routes(Router& router, const HandlerContext& context);
void add_notebank_routes(Router& router, const HandlerContext& context);
void add_page_routes(Router& router, const HandlerContext& context);
void add_tokenize_routes(Router& router, const HandlerContext& context);

}  // namespace spel::server
