// Reading a body away from the threads that serve connections.
#pragma once

#include <string_view>
#include <type_traits>
#include <utility>

#include "server/exchange.h"
#include "server/handlers/handlers.h"
#include "server/offload.h"
#include "server/trim.h"

namespace spel::server {

/// On which thread a body is read.
enum class Where {
  kBySize,     ///< A small one at once, a larger one on the reading thread.
  kElsewhere,  ///< On the reading thread: the reading is long whatever the size.
};

/// `read` of the body's text, which is gone before this returns. The reading thread reads one at a
/// time, so that only one of them takes what reading takes beside the text.
template <typename Read>
[[nodiscard]] Task<std::invoke_result_t<Read, std::string_view>> read_body(
    const HandlerContext& context, Exchange& exchange, Where where, Read read) {
  using Value = std::invoke_result_t<Read, std::string_view>;
  Body body = exchange.take_body();
  if (where == Where::kBySize && body.text.size() <= kSmallBodyBytes) {
    co_return read(std::string_view(body.text));
  }
  co_return co_await offload(context.reading.thread, exchange.executor(), [&]() -> Value {
    const TrimAfter trim(body.text.size());
    const Body held = std::move(body);
    return read(std::string_view(held.text));
  });
}

}  // namespace spel::server
