#include "server/transport.h"

#include <array>
#include <boost/asio/as_tuple.hpp>
#include <boost/asio/bind_executor.hpp>
#include <boost/asio/ssl/stream.hpp>

namespace spel::server {
namespace {

/// Buffers of a response: head, body, and the framing around a chunk.
constexpr std::size_t kGatherMax = 4;

/// A span as a buffer sequence whose copies Asio may keep.
class Gather {
 public:
  explicit Gather(std::span<const net::const_buffer> from)
      : count_(from.size() < kGatherMax ? from.size() : kGatherMax) {
    for (std::size_t i = 0; i < count_; ++i) {
      buffers_[i] = from[i];
    }
  }
  [[nodiscard]] const net::const_buffer* begin() const noexcept { return buffers_.data(); }
  [[nodiscard]] const net::const_buffer* end() const noexcept { return buffers_.data() + count_; }

 private:
  std::array<net::const_buffer, kGatherMax> buffers_;
  std::size_t count_;
};

template <typename Stream>
class StreamTransport : public Transport {
 public:
  template <typename... Args>
  explicit StreamTransport(const Executor& executor, Args&&... args)
      : executor_(executor), stream_(std::forward<Args>(args)...) {}

  const Executor& executor() const noexcept override { return executor_; }

  Task<IoError> handshake() override { co_return IoError{}; }

  Task<IoResult> read_some(net::mutable_buffer into) override {
    auto [error, bytes] = co_await stream_.async_read_some(into, net::as_tuple(use_task));
    co_return IoResult{error, bytes};
  }

  void start_read(net::mutable_buffer into, std::function<void(IoResult)> done) override {
    stream_.async_read_some(
        into,
        net::bind_executor(executor_, [done = std::move(done)](IoError error, std::size_t bytes) {
          done(IoResult{error, bytes});
        }));
  }

  Task<IoResult> write_some(std::span<const net::const_buffer> from) override {
    const Gather gather(from);
    auto [error, bytes] = co_await stream_.async_write_some(gather, net::as_tuple(use_task));
    co_return IoResult{error, bytes};
  }

  Task<void> shutdown_send() override {
    IoError ignored;
    socket().shutdown(net::socket_base::shutdown_send, ignored);
    co_return;
  }

  void cancel() noexcept override {
    IoError ignored;
    socket().cancel(ignored);
  }

  void close() noexcept override {
    IoError ignored;
    socket().close(ignored);
  }

 protected:
  [[nodiscard]] auto& socket() noexcept {
    if constexpr (requires { stream_.lowest_layer(); }) {
      return stream_.lowest_layer();
    } else {
      return stream_;
    }
  }

  Executor executor_;
  Stream stream_;
};

class TlsTransport final : public StreamTransport<net::ssl::stream<TcpSocket>> {
 public:
  TlsTransport(TcpSocket socket, net::ssl::context& context)
      : StreamTransport(socket.get_executor(), std::move(socket), context) {}

  Task<IoError> handshake() override {
    auto [error] =
        co_await stream_.async_handshake(net::ssl::stream_base::server, net::as_tuple(use_task));
    co_return error;
  }

  Task<void> shutdown_send() override {
    // close_notify tells the client that a body without a length is complete, not cut.
    (void)co_await stream_.async_shutdown(net::as_tuple(use_task));
    IoError ignored;
    socket().shutdown(net::socket_base::shutdown_send, ignored);
  }
};

}  // namespace

std::unique_ptr<Transport> make_tcp_transport(TcpSocket socket) {
  const Executor executor = socket.get_executor();
  return std::make_unique<StreamTransport<TcpSocket>>(executor, std::move(socket));
}

std::unique_ptr<Transport> make_unix_transport(UnixSocket socket) {
  const Executor executor = socket.get_executor();
  return std::make_unique<StreamTransport<UnixSocket>>(executor, std::move(socket));
}

std::unique_ptr<Transport> make_tls_transport(TcpSocket socket, net::ssl::context& context) {
  return std::make_unique<TlsTransport>(std::move(socket), context);
}

}  // namespace spel::server
