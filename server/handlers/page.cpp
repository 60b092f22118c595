#include "proto/openapi.h"
#include "server/embedded.h"
#include "server/handlers/handlers.h"

namespace spel::server {

void add_page_routes(Router& router, const HandlerContext&) {
  // Neither holds anything of this server's; the page asks for the key itself.
  const RouteOptions options{.needs_model = false, .is_public = true, .is_probe = false};
  router.add(Verb::get, "/", options, SyncHandler([](const Request&) {
               Response response = Response::with_fixed_body(200, "text/html; charset=utf-8",
                                                             embedded::index_html());
               // The page is one file: it may talk to this server and nothing else.
               response.add_header("Content-Security-Policy",
                                   "default-src 'none'; script-src 'unsafe-inline'; style-src "
                                   "'unsafe-inline'; img-src data:; connect-src 'self'; "
                                   "frame-ancestors 'none'; base-uri 'none'; form-action 'none'");
               response.add_header("Cache-Control", "no-cache");
               return response;
             }));
  router.add(Verb::get, "/openapi.json", options, SyncHandler([](const Request&) {
               static const std::string kDescription = proto::openapi_json();
               return Response::with_fixed_body(200, "application/json", kDescription);
             }));
}

}  // namespace spel::server
