// One request and the ways to answer it: what a handler holds.
#pragma once

#include <functional>
#include <string_view>

#include "server/body_budget.h"
#include "server/message.h"
#include "server/net.h"

namespace spel::server {

/// Strand only; valid until the handler returns. A handler answers exactly once: with send(), or
/// with begin_stream() … end_stream(). Every function that writes returns false once the client has
/// gone; the handler then stops.
class Exchange {
 public:
  virtual ~Exchange() = default;

  [[nodiscard]] virtual const Request& request() const noexcept = 0;
  /// The body, once: a request that waits in the queue must not hold it.
  [[nodiscard]] virtual Body take_body() = 0;
  [[nodiscard]] virtual const Executor& executor() const noexcept = 0;

  [[nodiscard]] virtual Task<bool> send(Response response) = 0;

  /// Sends the head of a body whose length is not known; `head` has no body. Chunked, or ended by
  /// the connection's end for an HTTP/1.0 client.
  [[nodiscard]] virtual Task<bool> begin_stream(Response head) = 0;
  [[nodiscard]] virtual Task<bool> write_stream(std::string_view bytes) = 0;
  /// A complete body: the connection can be used again.
  [[nodiscard]] virtual Task<bool> end_stream() = 0;
  /// An incomplete body, after an error: what was written goes out and the connection ends.
  virtual void abort_stream() = 0;

  /// Calls `on_closed` on the strand as soon as the client closes, until the handler returns.
  virtual void watch(std::function<void()> on_closed) = 0;
};

}  // namespace spel::server
