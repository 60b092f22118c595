#include "proto/tokenize.h"

#include "config/base/error.h"
#include "server/handlers/handlers.h"
#include "server/normalize_text.h"
#include "server/translate.h"

namespace spel::server {
namespace {

Response tokenize(const HandlerContext& context, const Request& request) {
  const engine::Engine& engine = *context.lifecycle.backend()->engine;
  proto::TokenizeRequest wanted =
      proto::parse_tokenize_request(request.body, json_limits(context.config));
  context.metrics.count_unknown_fields(wanted.unknown_fields);
  if (context.config.normalize_text) {
    normalize_text(wanted.content);
  }
  const engine::Tokenizer& tokenizer = engine.tokenizer();
  std::vector<proto::TokenPiece> pieces;
  if (wanted.add_special && tokenizer.bos()) {
    pieces.push_back({*tokenizer.bos(), std::string(tokenizer.bytes(*tokenizer.bos()))});
  }
  for (const engine::TokenId id : encode(tokenizer, wanted.content, "content")) {
    pieces.push_back({id, std::string(tokenizer.bytes(id))});
  }
  return json_response(proto::tokenize_response(pieces, wanted.with_pieces, engine.max_seq()));
}

Response detokenize(const HandlerContext& context, const Request& request) {
  const engine::Engine& engine = *context.lifecycle.backend()->engine;
  const proto::DetokenizeRequest wanted =
      proto::parse_detokenize_request(request.body, json_limits(context.config));
  context.metrics.count_unknown_fields(wanted.unknown_fields);
  proto::check_token_ids(wanted, engine.vocab_size());
  std::string bytes;
  for (const proto::TokenId id : wanted.tokens) {
    bytes += engine.tokenizer().bytes(id);
  }
  return json_response(proto::detokenize_response(bytes));
}

Response tokenizer_info(const HandlerContext& context) {
  const engine::Engine& engine = *context.lifecycle.backend()->engine;
  const engine::Tokenizer& tokenizer = engine.tokenizer();
  const auto text = [&](std::optional<engine::TokenId> id) {
    return id ? std::optional(std::string(tokenizer.bytes(*id))) : std::nullopt;
  };
  proto::TokenizerInfo info;
  info.max_seq = engine.max_seq();
  info.vocab_size = engine.vocab_size();
  info.bos = text(tokenizer.bos());
  info.eos = text(tokenizer.eos());
  return json_response(proto::tokenizer_info_response(info));
}

}  // namespace

void add_tokenize_routes(Router& router, const HandlerContext& context) {
  router.add(Verb::post, "/tokenize", {},
             SyncHandler([context](const Request& request) { return tokenize(context, request); }));
  router.add(Verb::post, "/detokenize", {}, SyncHandler([context](const Request& request) {
               return detokenize(context, request);
             }));
  router.add(Verb::get, "/tokenizer_info", {},
             SyncHandler([context](const Request&) { return tokenizer_info(context); }));
}

}  // namespace spel::server
