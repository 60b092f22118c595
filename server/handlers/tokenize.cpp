#include "proto/tokenize.h"

#include <utility>
#include <vector>

#include "proto/error_body.h"
#include "proto/vocabulary.h"
#include "server/answer_parts.h"
#include "server/handlers/body.h"
#include "server/handlers/handlers.h"
#include "server/normalize_text.h"
#include "server/translate.h"

namespace spel::server {
namespace {

/// What is held of a request until its answer has gone.
BodyCharge charge_for(const HandlerContext& context, const std::vector<engine::TokenId>& tokens) {
  BodyCharge charge(context.reading.answers);
  if (!charge.hold(tokens.capacity() * sizeof(engine::TokenId))) {
    throw proto::RequestError(proto::unavailable("too many large answers at once"));
  }
  return charge;
}

proto::BytesOf bytes_of(const engine::Tokenizer& tokenizer) {
  return [&tokenizer](engine::TokenId token) { return tokenizer.bytes(token); };
}

Task<void> tokenize(HandlerContext context, Exchange& exchange) {
  const engine::Engine& engine = *context.lifecycle.backend()->engine;
  const engine::Tokenizer& tokenizer = engine.tokenizer();
  bool with_pieces = false;
  std::vector<engine::TokenId> tokens =
      co_await read_body(context, exchange, Where::kBySize, [&](std::string_view body) {
        proto::TokenizeRequest wanted =
            proto::parse_tokenize_request(body, json_limits(context.config));
        context.metrics.count_unknown_fields(wanted.unknown_fields);
        if (context.config.normalize_text) {
          normalize_text(wanted.content);
        }
        with_pieces = wanted.with_pieces;
        std::vector<engine::TokenId> found = encode(tokenizer, wanted.content, "content");
        if (wanted.add_special && tokenizer.bos()) {
          found.insert(found.begin(), *tokenizer.bos());
        }
        return found;
      });
  const BodyCharge charge = charge_for(context, tokens);
  proto::TokenizeAnswer answer(std::move(tokens), bytes_of(tokenizer), with_pieces,
                               engine.max_seq());
  co_await send_json_parts(exchange, [&](std::string& out) { return answer.next(out); });
}

Task<void> detokenize(HandlerContext context, Exchange& exchange) {
  const engine::Engine& engine = *context.lifecycle.backend()->engine;
  std::vector<engine::TokenId> tokens =
      co_await read_body(context, exchange, Where::kBySize, [&](std::string_view body) {
        proto::DetokenizeRequest wanted =
            proto::parse_detokenize_request(body, json_limits(context.config));
        context.metrics.count_unknown_fields(wanted.unknown_fields);
        proto::check_token_ids(wanted, engine.vocab_size());
        return std::move(wanted.tokens);
      });
  const BodyCharge charge = charge_for(context, tokens);
  proto::DetokenizeAnswer answer(std::move(tokens), bytes_of(engine.tokenizer()));
  co_await send_json_parts(exchange, [&](std::string& out) { return answer.next(out); });
}

Response tokenizer_info(const HandlerContext& context) {
  const engine::Engine& engine = *context.lifecycle.backend()->engine;
  const engine::Tokenizer& tokenizer = engine.tokenizer();
  const auto text = [&](std::optional<engine::TokenId> id) {
    return id ? std::optional(std::string(tokenizer.bytes(*id))) : std::nullopt;
  };
  proto::TokenizerInfo info;
  info.max_seq = engine.max_seq();
  info.chat_template = context.lifecycle.backend()->chat.source();
  info.vocab_size = engine.vocab_size();
  info.bos = text(tokenizer.bos());
  info.eos = text(tokenizer.eos());
  return json_response(proto::tokenizer_info_response(info));
}

}  // namespace

void add_tokenize_routes(Router& router, const HandlerContext& context) {
  router.add(Verb::post, "/tokenize", {},
             AsyncHandler([context](Exchange& exchange) { return tokenize(context, exchange); }));
  router.add(Verb::post, "/detokenize", {},
             AsyncHandler([context](Exchange& exchange) { return detokenize(context, exchange); }));
  router.add(Verb::get, "/tokenizer_info", {},
             SyncHandler([context](const Request&) { return tokenizer_info(context); }));
}

}  // namespace spel::server
