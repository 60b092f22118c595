// The least HTTP server Beast allows: every request is answered with fifteen bytes of JSON. Two
// threads, as the real one has. Prints the port it took.
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/strand.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/core/tcp_stream.hpp>
#include <boost/beast/http.hpp>
#include <chrono>
#include <iostream>
#include <memory>
#include <thread>
#include <utility>

namespace {

namespace beast = boost::beast;
namespace http = beast::http;
namespace net = boost::asio;
using net::ip::tcp;

constexpr std::chrono::seconds kTimeout{30};
constexpr int kThreads = 2;

class Session : public std::enable_shared_from_this<Session> {
 public:
  explicit Session(tcp::socket socket) : stream_(std::move(socket)) {}

  void read() {
    request_ = {};
    stream_.expires_after(kTimeout);
    http::async_read(stream_, buffer_, request_,
                     [self = shared_from_this()](beast::error_code error, std::size_t) {
                       if (!error) {
                         self->write();
                       }
                     });
  }

 private:
  void write() {
    response_ = {http::status::ok, request_.version()};
    response_.set(http::field::content_type, "application/json");
    response_.keep_alive(request_.keep_alive());
    response_.body() = R"({"status":"ok"})";
    response_.prepare_payload();
    http::async_write(stream_, response_,
                      [self = shared_from_this()](beast::error_code error, std::size_t) {
                        if (!error && self->response_.keep_alive()) {
                          self->read();
                        }
                      });
  }

  beast::tcp_stream stream_;
  beast::flat_buffer buffer_;
  http::request<http::string_body> request_;
  http::response<http::string_body> response_;
};

void accept(net::io_context& io, tcp::acceptor& acceptor) {
  acceptor.async_accept(net::make_strand(io), [&](beast::error_code error, tcp::socket socket) {
    if (!error) {
      beast::error_code ignored;
      socket.set_option(tcp::no_delay(true), ignored);
      std::make_shared<Session>(std::move(socket))->read();
    }
    accept(io, acceptor);
  });
}

}  // namespace

int main() {
  net::io_context io(kThreads);
  tcp::acceptor acceptor(io, tcp::endpoint(net::ip::address_v4::loopback(), 0));
  std::cout << acceptor.local_endpoint().port() << std::endl;
  accept(io, acceptor);
  std::thread second([&] { io.run(); });
  io.run();
  second.join();
}
