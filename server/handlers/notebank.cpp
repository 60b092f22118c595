// The episodic memory's endpoints. Until the memory module is linked they say so, so that a client
// can tell a server without memory from a wrong path.
#include "server/handlers/handlers.h"

namespace spel::server {

void add_notebank_routes(Router& router, const HandlerContext&) {
  const SyncHandler refuse = [](const Request&) {
    return error_response(proto::not_supported("NoteBank is not part of this build"));
  };
  const RouteOptions options{.needs_model = false, .is_public = false, .is_probe = false};
  router.add(Verb::get, "/v1/notebanks", options, refuse);
  router.add(Verb::get, "/v1/notebanks/{bank}", options, refuse);
  router.add(Verb::delete_, "/v1/notebanks/{bank}", options, refuse);
  router.add(Verb::get, "/v1/notebanks/{bank}/notes/{id}", options, refuse);
  router.add(Verb::delete_, "/v1/notebanks/{bank}/notes/{id}", options, refuse);
  for (const char* action : {"write", "address", "replay"}) {
    router.add(Verb::post, std::string("/v1/notebanks/{bank}/") + action, options, refuse);
  }
}

}  // namespace spel::server
