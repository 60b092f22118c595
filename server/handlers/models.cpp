#include "proto/responses.h"
#include "server/handlers/handlers.h"

namespace spel::server {
namespace {

proto::ModelCard card_of(const Backend& backend) {
  proto::ModelCard card;
  card.id = backend.model_id;
  card.created = backend.created;
  card.max_seq = backend.engine->max_seq();
  card.vocab_size = backend.engine->vocab_size();
  card.parameters = backend.parameters;
  card.draft_parameters = backend.draft_parameters;
  card.bytes = backend.weight_bytes;
  return card;
}

}  // namespace

void add_model_routes(Router& router, const HandlerContext& context) {
  const Lifecycle& lifecycle = context.lifecycle;
  router.add(Verb::get, "/v1/models", {}, SyncHandler([&lifecycle](const Request&) {
               return json_response(proto::models_response(card_of(*lifecycle.backend())));
             }));
  router.add(Verb::get, "/v1/models/{id}", {}, SyncHandler([&lifecycle](const Request& request) {
               const Backend& backend = *lifecycle.backend();
               if (request.parameters.front() != backend.model_id) {
                 throw proto::RequestError(proto::model_not_found(request.parameters.front()));
               }
               return json_response(proto::model_response(card_of(backend)));
             }));
}

}  // namespace spel::server
