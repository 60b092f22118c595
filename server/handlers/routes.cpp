#include "server/handlers/handlers.h"

namespace spel::server {

void add_routes(Router& router, const HandlerContext& context) {
  add_completion_routes(router, context);
  add_figure_routes(router, context);
  add_health_routes(router, context);
  add_model_routes(router, context);
  add_notebank_routes(router, context);
  add_page_routes(router, context);
  add_tokenize_routes(router, context);
}

}  // namespace spel::server
