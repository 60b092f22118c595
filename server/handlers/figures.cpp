#include "server/figures.h"

#include "server/handlers/handlers.h"
#include "server/translate.h"

namespace spel::server {

void add_figure_routes(Router& router, const HandlerContext& context) {
  const auto started = Clock::now();
  router.add(Verb::get, "/metrics", {.needs_model = false, .is_public = false, .is_probe = true},
             SyncHandler([context](const Request&) {
               return Response(200, "text/plain; version=0.0.4; charset=utf-8",
                               metrics_page(take_snapshot(context.lifecycle, context.metrics)));
             }));
  router.add(Verb::get, "/v1/stats", {}, SyncHandler([context, started](const Request&) {
               Snapshot now = take_snapshot(context.lifecycle, context.metrics);
               now.uptime_seconds = std::chrono::duration<double>(Clock::now() - started).count();
               now.k = context.config.spec_k;
               now.governor = governor_of(context.config);
               return json_response(stats_body(now));
             }));
}

}  // namespace spel::server
