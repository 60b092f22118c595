// A connected byte stream: TCP, TLS over TCP, or a Unix socket, behind one interface so that the
// HTTP code is compiled once.
#pragma once

#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <boost/asio/ssl/context.hpp>
#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <utility>

#include "server/net.h"

namespace spel::server {

using TcpSocket = net::basic_stream_socket<net::ip::tcp, Executor>;
using UnixSocket = net::basic_stream_socket<net::local::stream_protocol, Executor>;

struct IoResult {
  IoError error;
  std::size_t bytes = 0;
};

/// Strand only. At most one read and one write at a time; they may overlap.
class Transport {
 public:
  virtual ~Transport() = default;

  [[nodiscard]] virtual const Executor& executor() const noexcept = 0;

  /// TLS: the handshake. Otherwise nothing.
  [[nodiscard]] virtual Task<IoError> handshake() = 0;
  [[nodiscard]] virtual Task<IoResult> read_some(net::mutable_buffer into) = 0;
  /// The same with a callback, for a read that stays outstanding while others write.
  virtual void start_read(net::mutable_buffer into, std::function<void(IoResult)> done) = 0;
  /// Writes some of the buffers, in order; at least one byte unless there is an error.
  [[nodiscard]] virtual Task<IoResult> write_some(std::span<const net::const_buffer> from) = 0;

  /// Says that nothing more will be written; the peer may still send.
  [[nodiscard]] virtual Task<void> shutdown_send() = 0;
  /// Ends outstanding operations with operation_aborted.
  virtual void cancel() noexcept = 0;
  /// Closes at once. Idempotent.
  virtual void close() noexcept = 0;
};

[[nodiscard]] std::unique_ptr<Transport> make_tcp_transport(TcpSocket socket);
[[nodiscard]] std::unique_ptr<Transport> make_unix_transport(UnixSocket socket);
/// `context` must outlive the transport.
[[nodiscard]] std::unique_ptr<Transport> make_tls_transport(TcpSocket socket,
                                                            net::ssl::context& context);

}  // namespace spel::server
