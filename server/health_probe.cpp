#include "server/health_probe.h"

#include <algorithm>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/connect.hpp>
#include <boost/asio/read_until.hpp>
#include <boost/asio/ssl/stream.hpp>
#include <boost/asio/write.hpp>
#include <boost/system/system_error.hpp>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <string_view>

#include "config/base/error.h"
#include "config/load.h"
#include "server/transport.h"

namespace spel::server {
namespace {

using net::ip::tcp;

constexpr int kExitUsage = 2;
constexpr std::chrono::seconds kPatience{2};
constexpr std::size_t kHeadBytesMax = 8192;
constexpr std::string_view kQuestion =
    "GET /health/ready HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
constexpr std::string_view kReady = "HTTP/1.1 200";

constexpr std::string_view kHelp =
    "usage: spel health [FLAG ...]\n\n"
    "Asks the server whether it is ready: exit status 0 if it is, 1 if it is not (the reason is\n"
    "written to standard error), 2 for bad settings. It reads the flags, variables and file that\n"
    "`spel serve` reads, and so finds a Unix socket, TLS or another port.\n";

/// Where a client on this machine reaches a server that listens there.
std::string address_of(const std::string& host) {
  if (host == "0.0.0.0") {
    return "127.0.0.1";
  }
  return host == "::" ? "::1" : host;
}

std::string place_of(const config::ServerConfig& config) {
  if (!config.unix_socket.empty()) {
    return config.unix_socket;
  }
  return address_of(config.host) + ", port " + std::to_string(config.port);
}

template <typename Stream>
Task<std::string> status_line(Stream& stream) {
  co_await net::async_write(stream, net::buffer(kQuestion), use_task);
  std::string reply;
  co_await net::async_read_until(stream, net::dynamic_buffer(reply, kHeadBytesMax), "\r\n",
                                 use_task);
  reply.resize(reply.find("\r\n"));
  co_return reply;
}

Task<std::string> ask_unix(Executor executor, std::string path) {
  UnixSocket socket(executor);
  co_await socket.async_connect(net::local::stream_protocol::endpoint(path), use_task);
  std::string line = co_await status_line(socket);
  co_return line;
}

Task<std::string> ask_tcp(Executor executor, std::string host, std::uint16_t port, bool tls) {
  net::ip::basic_resolver<tcp, Executor> resolver(executor);
  const auto endpoints = co_await resolver.async_resolve(host, std::to_string(port), use_task);
  TcpSocket socket(executor);
  co_await net::async_connect(socket, endpoints, use_task);
  std::string line;
  if (tls) {
    net::ssl::context context(net::ssl::context::tls_client);
    context.set_verify_mode(net::ssl::verify_none);
    net::ssl::stream<TcpSocket> stream(std::move(socket), context);
    co_await stream.async_handshake(net::ssl::stream_base::client, use_task);
    line = co_await status_line(stream);
  } else {
    line = co_await status_line(socket);
  }
  co_return line;
}

Task<std::string> ask(const Executor& executor, const config::ServerConfig& config) {
  if (!config.unix_socket.empty()) {
    return ask_unix(executor, config.unix_socket);
  }
  return ask_tcp(executor, address_of(config.host), config.port, !config.tls_cert.empty());
}

bool asks_for_help(const std::string& argument) { return argument == "--help" || argument == "-h"; }

}  // namespace

std::optional<std::string> why_not_ready(const config::ServerConfig& config,
                                         std::chrono::milliseconds patience) {
  std::optional<std::string> why = "no answer within " + std::to_string(patience.count()) + " ms";
  net::io_context io(1);
  const Executor executor = net::make_strand(io);
  net::co_spawn(executor, ask(executor, config),
                [&why](const std::exception_ptr& failure, const std::string& line) {
                  try {
                    if (failure) {
                      std::rethrow_exception(failure);
                    }
                    why.reset();
                    if (!line.starts_with(kReady)) {
                      why = "the answer is \"" + line + "\"";
                    }
                  } catch (const boost::system::system_error& error) {
                    why = error.code().message();
                  } catch (const std::exception& error) {
                    why = error.what();
                  }
                });
  io.run_for(patience);
  if (why) {
    why = place_of(config) + ": " + *why;
  }
  return why;
}

int health(const std::vector<std::string>& arguments) {
  if (std::any_of(arguments.begin(), arguments.end(), asks_for_help)) {
    std::fputs(std::string(kHelp).c_str(), stdout);
    return EXIT_SUCCESS;
  }
  try {
    const config::ServerConfig config =
        config::load_server_config(arguments, config::process_environment()).config;
    if (config.unix_socket.empty() && config.port == 0) {
      throw Error(ErrorCode::kInvalidArgument,
                  "port 0 does not say where the server listens; give the port its log names");
    }
    const std::optional<std::string> why = why_not_ready(config, kPatience);
    if (!why) {
      return EXIT_SUCCESS;
    }
    std::fprintf(stderr, "spel health: not ready: %s\n", why->c_str());
  } catch (const Error& error) {
    std::fprintf(stderr, "spel health: %s\n", error.what());
    return error.code() == ErrorCode::kInvalidArgument ? kExitUsage : EXIT_FAILURE;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "spel health: %s\n", error.what());
  }
  return EXIT_FAILURE;
}

}  // namespace spel::server
