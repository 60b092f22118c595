#include "server/handlers/handlers.h"

namespace spel::server {

void add_metrics_route(Router& router, const HandlerContext& context) {
  router.add(
      Verb::get, "/metrics", {.needs_model = false, .is_public = false, .is_probe = true},
      SyncHandler([&metrics = context.metrics, &lifecycle = context.lifecycle](const Request&) {
        return Response(200, "text/plain; version=0.0.4; charset=utf-8", metrics.scrape(lifecycle));
      }));
}

}  // namespace spel::server
