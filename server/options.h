// What the HTTP layer can be told: addresses, limits and deadlines. All have the documented
// defaults; tests set short ones.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace spel::server {

struct HttpLimits {
  std::size_t header_bytes = 8192;  ///< Start line and fields together.
  std::size_t header_fields = 100;
  std::size_t body_bytes = std::size_t{1} << 20;
  /// Bytes a request may take on the wire, as a multiple of body_bytes: chunk extensions and
  /// one-byte chunks are not counted by a body limit.
  std::size_t wire_factor = 4;
  std::chrono::milliseconds header_timeout{10'000};  ///< Whole header, from its first byte.
  std::chrono::milliseconds body_timeout{30'000};    ///< Whole body.
  std::chrono::milliseconds idle_timeout{60'000};    ///< Between requests.
  std::chrono::milliseconds write_stall{10'000};     ///< Without a byte taken by the client.
  std::chrono::milliseconds linger{2'000};           ///< Reading what a refused client still sends.
  std::size_t connections = 1024;
  /// Beyond the cap, this many more are let in for /health and /metrics only, so that a full server
  /// can still be watched.
  std::size_t spare_connections = 16;
  int send_buffer_bytes = 32 * 1024;  ///< Kernel memory one slow reader can pin.
};

struct TlsFiles {
  std::string certificate;  ///< PEM chain.
  std::string key;          ///< PEM.
};

struct ServerOptions {
  std::string host = "127.0.0.1";  ///< Address, "localhost", or "*"; empty: no TCP.
  std::uint16_t port = 8080;       ///< 0: any free one.
  std::string unix_socket;         ///< Path; empty: none.
  TlsFiles tls;                    ///< For TCP. Empty: plain.
  std::size_t io_threads = 2;
  HttpLimits limits;
  std::chrono::milliseconds drain{10'000};

  std::vector<std::string> api_keys;         ///< Empty: no authentication.
  std::vector<std::string> allowed_origins;  ///< Empty: no cross-origin access.
  std::vector<std::string> allowed_hosts;    ///< Host names accepted beside the loopback ones.
};

}  // namespace spel::server
