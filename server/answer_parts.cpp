#include "server/answer_parts.h"

#include <utility>

namespace spel::server {

Task<void> send_json_parts(Exchange& exchange, NextPart next) {
  std::string part;
  bool more = next(part);
  if (!more) {
    (void)co_await exchange.send(json_response(std::move(part)));
    co_return;
  }
  bool alive = co_await exchange.begin_stream(json_response({}));
  while (alive) {
    alive = co_await exchange.write_stream(part);
    if (!alive || !more) {
      break;
    }
    part.clear();
    more = next(part);
  }
  if (alive) {
    (void)co_await exchange.end_stream();
  }
}

}  // namespace spel::server
