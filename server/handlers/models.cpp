#include <charconv>

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

/// Model ids have slashes ("Qwen/Qwen3.5-0.8B"), which clients write as they are or as %2F. What is
/// no escape stays as it is.
std::string percent_decoded(std::string_view text) {
  std::string result;
  for (std::size_t i = 0; i < text.size(); ++i) {
    unsigned value = 0;
    const char* begin = text.data() + i + 1;
    const bool escape = text[i] == '%' && i + 2 < text.size() &&
                        std::from_chars(begin, begin + 2, value, 16).ptr == begin + 2;
    result.push_back(escape ? static_cast<char>(value) : text[i]);
    i += escape ? 2U : 0U;
  }
  return result;
}

}  // namespace

void add_model_routes(Router& router, const HandlerContext& context) {
  const Lifecycle& lifecycle = context.lifecycle;
  router.add(Verb::get, "/v1/models", {}, SyncHandler([&lifecycle](const Request&) {
               return json_response(proto::models_response(card_of(*lifecycle.backend())));
             }));
  router.add(Verb::get, "/v1/models/{id}", {.takes_rest = true},
             SyncHandler([&lifecycle](const Request& request) {
               const Backend& backend = *lifecycle.backend();
               const std::string id = percent_decoded(request.parameters.front());
               if (id != backend.model_id) {
                 throw proto::RequestError(proto::model_not_found(id));
               }
               return json_response(proto::model_response(card_of(backend)));
             }));
}

}  // namespace spel::server
