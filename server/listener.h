// Listens on the configured addresses and turns connections into sessions.
#pragma once

#include <atomic>
#include <boost/asio/basic_socket_acceptor.hpp>
#include <cstdint>
#include <exception>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "server/context.h"
#include "server/transport.h"

namespace spel::server {

/// Owned by the server; outlives the sessions it starts.
class Listener {
 public:
  Listener(net::io_context& io, ServerContext& context);
  ~Listener();

  /// Binds every address the host stands for: "localhost" is 127.0.0.1 and ::1. One that this
  /// machine does not have is left out and logged; for any other that cannot be bound throws Error
  /// naming it and the system's reason. A Unix socket left by a dead process is replaced.
  void open();
  /// Accepts from now on.
  void start();
  /// Stops accepting; the addresses are free again. Any thread, idempotent.
  void close();

  [[nodiscard]] std::uint16_t port() const noexcept { return port_; }
  /// "http://127.0.0.1:8080", "unix:/run/spel.sock".
  [[nodiscard]] const std::vector<std::string>& urls() const noexcept { return urls_; }

 private:
  using TcpAcceptor = net::basic_socket_acceptor<net::ip::tcp, Executor>;
  using UnixAcceptor = net::basic_socket_acceptor<net::local::stream_protocol, Executor>;

  void load_tls();
  void open_tcp();
  void open_unix();
  [[nodiscard]] std::vector<net::ip::address> addresses();
  /// False, and problem_ says which: an address that is there could not be bound.
  [[nodiscard]] bool listen_on(const std::vector<net::ip::address>& wanted);
  [[nodiscard]] IoError bind(const net::ip::tcp::endpoint& endpoint);
  void remove_socket_file() noexcept;

  /// Accepts until the acceptor is closed, whatever fails meanwhile.
  template <typename Acceptor>
  void run(Acceptor& acceptor);
  void say_failed(std::exception_ptr error);
  template <typename Acceptor>
  [[nodiscard]] Task<void> accept_loop(Acceptor& acceptor);
  template <typename Acceptor>
  void shed_one(Acceptor& acceptor);
  void admit(TcpSocket socket);
  void admit(UnixSocket socket);
  [[nodiscard]] bool admit(std::unique_ptr<Transport> transport, bool check_host, int handle);

  net::io_context& io_;
  ServerContext& context_;
  Executor strand_;
  std::optional<net::ssl::context> tls_;
  std::vector<TcpAcceptor> tcp_;
  std::optional<UnixAcceptor> unix_;
  std::atomic<bool> has_socket_file_{false};
  std::string problem_;  ///< Why the last address could not be bound.
  std::uint16_t port_ = 0;
  std::vector<std::string> urls_;
  const std::string too_many_;  ///< The answer beyond all caps.
  std::size_t cap_ = 0;
  int spare_fd_ = -1;  ///< Closed to take, and turn away, a connection when no descriptor is left.
};

}  // namespace spel::server
