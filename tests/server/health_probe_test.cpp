// What `spel health` says of servers that listen in different ways.
#include "server/health_probe.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include "certificate.h"
#include "support.h"
#include "tests/scratch_folder.h"

namespace spel::server::testing {
namespace {

constexpr milliseconds kPatience{5'000};

std::optional<std::string> probe(const TestServer& server, config::ServerConfig config = {}) {
  config.port = server.port();
  return why_not_ready(config, kPatience);
}

TEST(HealthProbe, FindsAReadyServer) {
  const TestServer server(ascii_script("ok"));
  EXPECT_EQ(probe(server), std::nullopt);
  EXPECT_EQ(health({"--port", std::to_string(server.port())}), 0);
}

TEST(HealthProbe, SaysWhenTheModelIsStillLoading) {
  const TestServer server{TestServer::Loading{}};
  const std::optional<std::string> why = probe(server);
  ASSERT_TRUE(why);
  EXPECT_NE(why->find("503"), std::string::npos) << *why;
  EXPECT_EQ(health({"--port", std::to_string(server.port())}), 1);
}

TEST(HealthProbe, SaysWhenNothingListens) {
  config::ServerConfig config;
  {
    const TestServer gone(ascii_script("ok"));
    config.port = gone.port();
  }
  const std::optional<std::string> why = why_not_ready(config, kPatience);
  ASSERT_TRUE(why);
  EXPECT_EQ(*why, "127.0.0.1, port " + std::to_string(config.port) + ": Connection refused");
}

TEST(HealthProbe, DoesNotWaitForAServerThatSaysNothing) {
  const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof(address);
  auto* const plain = reinterpret_cast<sockaddr*>(&address);
  ASSERT_EQ(::bind(fd, plain, size), 0);
  ASSERT_EQ(::listen(fd, 1), 0);
  ASSERT_EQ(::getsockname(fd, plain, &size), 0);
  config::ServerConfig config;
  config.port = ntohs(address.sin_port);
  const std::optional<std::string> why = why_not_ready(config, milliseconds(50));
  ::close(fd);
  ASSERT_TRUE(why);
  EXPECT_NE(why->find("no answer within 50 ms"), std::string::npos) << *why;
}

TEST(HealthProbe, AsksAServerOnAllAddressesOverTheLoopback) {
  const TestServer server(ascii_script("ok"),
                          [](config::ServerConfig& config) { config.host = "127.0.0.1"; });
  config::ServerConfig config;
  config.host = "0.0.0.0";
  EXPECT_EQ(probe(server, config), std::nullopt);
}

TEST(HealthProbe, FindsAUnixSocket) {
  const spel::testing::ScratchFolder directory;
  config::ServerConfig config;
  config.unix_socket = directory.file("spel.sock");
  {
    const TestServer server(ascii_script("ok"),
                            [&](config::ServerConfig& c) { c.unix_socket = config.unix_socket; });
    EXPECT_EQ(why_not_ready(config, kPatience), std::nullopt);
    EXPECT_EQ(health({"--unix-socket", config.unix_socket}), 0);
  }
  EXPECT_TRUE(why_not_ready(config, kPatience));
}

TEST(HealthProbe, SpeaksTlsWhereTheServerDoes) {
  const spel::testing::ScratchFolder directory;
  const std::optional<Certificate> made = make_certificate(directory);
  if (!made) {
    GTEST_SKIP() << "the openssl command is not installed";
  }
  config::ServerConfig config;
  config.tls_cert = made->chain;
  config.tls_key = made->key;
  const TestServer server(ascii_script("ok"), [&](config::ServerConfig& c) {
    c.tls_cert = config.tls_cert;
    c.tls_key = config.tls_key;
  });
  EXPECT_EQ(probe(server, config), std::nullopt);
  EXPECT_TRUE(probe(server)) << "without TLS";
}

TEST(HealthProbe, RefusesSettingsThatDoNotSayWhere) {
  EXPECT_EQ(health({"--port", "0"}), 2);
  EXPECT_EQ(health({"--prot", "80"}), 2);
}

}  // namespace
}  // namespace spel::server::testing
