#include "proto/responses.h"
#include "server/constants.h"
#include "server/handlers/handlers.h"

namespace spel::server {
namespace {

Response ready_answer(const Lifecycle& lifecycle) {
  const Phase phase = lifecycle.phase();
  if (phase == Phase::kReady) {
    return json_response(proto::health_body());
  }
  Response response(503, "application/json", proto::health_unavailable_body(phase_name(phase)));
  response.add_header("Retry-After", std::to_string(kRetryAfterSeconds));
  return response;
}

}  // namespace

void add_health_routes(Router& router, const HandlerContext& context) {
  const RouteOptions probe{.needs_model = false, .is_public = true, .is_probe = true};
  const Lifecycle& lifecycle = context.lifecycle;
  const auto ready = [&lifecycle](const Request&) { return ready_answer(lifecycle); };
  router.add(Verb::get, "/health", probe, SyncHandler(ready));
  router.add(Verb::get, "/health/ready", probe, SyncHandler(ready));
  // Alive is what can answer: a server that drains must not be killed for it.
  router.add(Verb::get, "/health/live", probe,
             SyncHandler([](const Request&) { return json_response(proto::health_body()); }));
}

}  // namespace spel::server
