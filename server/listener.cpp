#include "server/listener.h"

#include <algorithm>
#include <boost/asio/as_tuple.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/ip/v6_only.hpp>
#include <boost/asio/post.hpp>
#include <cerrno>
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>
#include <utility>

#include "config/base/error.h"
#include "server/constants.h"
#include "server/session.h"

namespace spel::server {
namespace {

using net::ip::tcp;

/// Descriptors kept for everything but connections: event loop, listeners, model files, logs.
constexpr std::size_t kOwnDescriptors = 24;
constexpr std::chrono::milliseconds kAcceptBackoff{50};
/// For a port that is free on every address, where any port will do.
constexpr int kFreePortTries = 16;

std::string too_many_connections() {
  const Response response = error_response(proto::unavailable("too many connections"));
  HeadOptions options;
  options.keep_alive = false;
  return serialize_head(response, options) + std::string(response.body());
}

int open_spare_fd() { return ::open("/dev/null", O_RDONLY | O_CLOEXEC); }

std::size_t connection_cap(std::size_t configured) {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) {
    return configured;
  }
  const std::size_t own = kOwnDescriptors + kSpareConnections;
  const auto most = static_cast<std::size_t>(limit.rlim_cur);
  return std::min(configured, most > own + 1 ? most - own : 1);
}

bool is_exhausted(const IoError& error) {
  return error == net::error::no_descriptors || error == net::error::no_memory ||
         error == net::error::no_buffer_space ||
         error == IoError(ENFILE, boost::system::system_category());
}

/// A name's address of a family, or of an interface, that is not there.
bool is_absent(const IoError& error) {
  return error == net::error::address_family_not_supported ||
         error == IoError(EADDRNOTAVAIL, boost::system::system_category());
}

std::string text_of(const tcp::endpoint& endpoint) {
  const std::string address = endpoint.address().to_string();
  return (endpoint.address().is_v6() ? "[" + address + "]" : address) + ":" +
         std::to_string(endpoint.port());
}

}  // namespace

Listener::Listener(net::io_context& io, ServerContext& context)
    : io_(io),
      context_(context),
      strand_(net::make_strand(io)),
      too_many_(too_many_connections()) {}

Listener::~Listener() {
  remove_socket_file();
  if (spare_fd_ >= 0) {
    ::close(spare_fd_);
  }
}

void Listener::open() {
  cap_ = connection_cap(context_.config.connections);
  if (cap_ < context_.config.connections) {
    context_.log.event(LogLevel::kWarning, "fewer connections than configured: file descriptors",
                       {{"connections", static_cast<std::int64_t>(cap_)}});
  }
  spare_fd_ = open_spare_fd();
  if (!context_.config.unix_socket.empty()) {
    open_unix();
    return;
  }
  if (!context_.config.tls_cert.empty()) {
    load_tls();
  }
  open_tcp();
}

void Listener::load_tls() {
  tls_.emplace(net::ssl::context::tls_server);
  tls_->set_options(net::ssl::context::default_workarounds | net::ssl::context::no_sslv2 |
                    net::ssl::context::no_sslv3 | net::ssl::context::no_tlsv1 |
                    net::ssl::context::no_tlsv1_1 | SSL_OP_NO_RENEGOTIATION);
  IoError error;
  tls_->use_certificate_chain_file(context_.config.tls_cert, error);
  if (error) {
    throw Error(ErrorCode::kInvalidArgument,
                "tls_cert " + context_.config.tls_cert + ": " + error.message());
  }
  tls_->use_private_key_file(context_.config.tls_key, net::ssl::context::pem, error);
  if (error) {
    throw Error(ErrorCode::kInvalidArgument,
                "tls_key " + context_.config.tls_key + ": " + error.message());
  }
}

IoError Listener::bind(const tcp::endpoint& endpoint) {
  IoError error;
  TcpAcceptor acceptor(strand_);
  acceptor.open(endpoint.protocol(), error);
  if (!error && endpoint.address().is_v6()) {
    // "::" takes IPv4 clients as well; a particular address is just that.
    acceptor.set_option(net::ip::v6_only(!endpoint.address().is_unspecified()), error);
  }
  if (!error) {
    acceptor.set_option(net::socket_base::reuse_address(true), error);
  }
  if (!error) {
    acceptor.bind(endpoint, error);
  }
  if (!error) {
    acceptor.listen(net::socket_base::max_listen_connections, error);
  }
  if (error) {
    return error;
  }
  const tcp::endpoint local = acceptor.local_endpoint();
  port_ = local.port();
  urls_.push_back((tls_ ? "https://" : "http://") + text_of(local));
  tcp_.push_back(std::move(acceptor));
  return {};
}

/// What the configured host stands for.
std::vector<net::ip::address> Listener::addresses() {
  const std::string& host = context_.config.host;
  if (host == "localhost") {
    return {net::ip::address_v4::loopback(), net::ip::address_v6::loopback()};
  }
  if (host == "*") {
    return {net::ip::address_v6::any(), net::ip::address_v4::any()};
  }
  IoError error;
  if (const auto literal = net::ip::make_address(host, error); !error) {
    return {literal};
  }
  std::vector<net::ip::address> found;
  tcp::resolver resolver(io_);
  for (const auto& entry : resolver.resolve(host, "", tcp::resolver::passive, error)) {
    if (std::find(found.begin(), found.end(), entry.endpoint().address()) == found.end()) {
      found.push_back(entry.endpoint().address());
    }
  }
  if (found.empty()) {
    throw Error(ErrorCode::kInvalidArgument, "host " + host + ": " + error.message());
  }
  return found;
}

void Listener::open_tcp() {
  const std::vector<net::ip::address> wanted = addresses();
  for (int tries = kFreePortTries; !listen_on(wanted); --tries) {
    // The port the system chose on the first address is somebody's on another.
    tcp_.clear();
    urls_.clear();
    if (context_.config.port != 0 || tries == 1) {
      throw Error(ErrorCode::kIo, "cannot listen on " + problem_);
    }
  }
  if (tcp_.empty()) {
    throw Error(ErrorCode::kIo, "cannot listen on " + problem_);
  }
}

bool Listener::listen_on(const std::vector<net::ip::address>& wanted) {
  // "*" is one socket for both families, or where there is only one family the other address.
  const bool any_will_do = context_.config.host == "*";
  std::uint16_t port = context_.config.port;
  problem_.clear();
  for (const net::ip::address& address : wanted) {
    const tcp::endpoint endpoint(address, port);
    if (const IoError error = bind(endpoint)) {
      problem_ = text_of(endpoint) + ": " + error.message();
      if (!is_absent(error)) {
        return false;
      }
      context_.log.event(LogLevel::kInfo, "an address that this machine does not have is left out",
                         {{"address", problem_}});
    } else if (any_will_do) {
      break;
    }
    port = tcp_.empty() ? port : port_;  // One for all addresses, also where any will do.
  }
  return true;
}

void Listener::open_unix() {
  const std::string& path = context_.config.unix_socket;
  if (path.size() >= sizeof(sockaddr_un::sun_path)) {
    throw Error(ErrorCode::kInvalidArgument, "unix_socket " + path + ": the path is too long");
  }
  const net::local::stream_protocol::endpoint endpoint(path);
  struct stat info{};
  if (::lstat(path.c_str(), &info) == 0) {
    if (!S_ISSOCK(info.st_mode)) {
      throw Error(ErrorCode::kIo, "unix_socket " + path + ": exists and is not a socket");
    }
    IoError error;
    net::local::stream_protocol::socket probe(io_);
    probe.connect(endpoint, error);
    if (!error) {
      throw Error(ErrorCode::kIo, "unix_socket " + path + ": another server is listening there");
    }
    ::unlink(path.c_str());
  }
  IoError error;
  unix_.emplace(strand_);
  unix_->open(endpoint.protocol(), error);
  if (!error) {
    unix_->bind(endpoint, error);
    has_socket_file_ = !error;
  }
  if (!error && ::chmod(path.c_str(), S_IRUSR | S_IWUSR) != 0) {
    error = IoError(errno, boost::system::system_category());
  }
  if (!error) {
    unix_->listen(net::socket_base::max_listen_connections, error);
  }
  if (error) {
    throw Error(ErrorCode::kIo, "unix_socket " + path + ": " + error.message());
  }
  urls_.push_back("unix:" + path);
}

void Listener::start() {
  for (TcpAcceptor& acceptor : tcp_) {
    run(acceptor);
  }
  if (unix_) {
    run(*unix_);
  }
}

void Listener::remove_socket_file() noexcept {
  if (has_socket_file_.exchange(false)) {
    ::unlink(context_.config.unix_socket.c_str());
  }
}

void Listener::close() {
  // Not left to the strand: the process may end before that has its turn.
  remove_socket_file();
  net::post(strand_, [this] {
    IoError ignored;
    for (TcpAcceptor& acceptor : tcp_) {
      acceptor.close(ignored);
    }
    if (unix_) {
      unix_->close(ignored);
    }
  });
}

template <typename Acceptor>
void Listener::run(Acceptor& acceptor) {
  net::co_spawn(strand_, accept_loop(acceptor), [this, &acceptor](std::exception_ptr error) {
    if (error) {
      say_failed(std::move(error));
      run(acceptor);
    }
  });
}

void Listener::say_failed(std::exception_ptr error) {
  try {
    std::rethrow_exception(std::move(error));
  } catch (const std::exception& problem) {
    context_.log.event(LogLevel::kError, "a connection could not be taken",
                       {{"error", std::string_view(problem.what())}});
  }
}

template <typename Acceptor>
Task<void> Listener::accept_loop(Acceptor& acceptor) {
  Timer pause(strand_);
  while (acceptor.is_open()) {
    std::exception_ptr failed;
    try {
      auto [error, socket] =
          co_await acceptor.async_accept(net::make_strand(io_), net::as_tuple(use_task));
      if (!acceptor.is_open()) {
        break;
      }
      if (!error) {
        admit(std::move(socket));
        continue;
      }
      if (is_exhausted(error)) {
        shed_one(acceptor);
      }
    } catch (...) {
      failed = std::current_exception();
    }
    if (failed) {
      say_failed(std::move(failed));
    }
    // Whatever it is, the next accept would fail as fast: never spin.
    pause.expires_after(kAcceptBackoff);
    (void)co_await pause.async_wait(net::as_tuple(use_task));
  }
}

template <typename Acceptor>
void Listener::shed_one(Acceptor& acceptor) {
  if (spare_fd_ < 0) {
    return;
  }
  ::close(spare_fd_);
  const int handle = ::accept4(acceptor.native_handle(), nullptr, nullptr, SOCK_NONBLOCK);
  if (handle >= 0) {
    (void)::send(handle, too_many_.data(), too_many_.size(), MSG_NOSIGNAL);
    ::close(handle);
    context_.metrics.connection_refused();
  }
  spare_fd_ = open_spare_fd();
}

void Listener::admit(TcpSocket socket) {
  IoError ignored;
  socket.set_option(tcp::no_delay(true), ignored);
  socket.set_option(net::socket_base::send_buffer_size(kSendBufferBytes), ignored);
  const int handle = socket.native_handle();
  (void)admit(
      tls_ ? make_tls_transport(std::move(socket), *tls_) : make_tcp_transport(std::move(socket)),
      true, tls_ ? -1 : handle);
}

void Listener::admit(UnixSocket socket) {
  const int handle = socket.native_handle();
  (void)admit(make_unix_transport(std::move(socket)), false, handle);
}

bool Listener::admit(std::unique_ptr<Transport> transport, bool check_host, int handle) {
  const std::size_t open = context_.sessions.size();
  if (open >= cap_ + kSpareConnections) {
    if (handle >= 0) {
      (void)::send(handle, too_many_.data(), too_many_.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    }
    context_.metrics.connection_refused();
    transport->close();
    return false;
  }
  SessionOptions options;
  options.spare = open >= cap_;
  options.check_host = check_host;
  std::make_shared<Session>(context_, std::move(transport), options)->start();
  return true;
}

}  // namespace spel::server
