// Who may talk to the server, and over what.
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <openssl/err.h>
#include <openssl/ssl.h>

#include "certificate.h"
#include "config/base/error.h"
#include "support.h"
#include "tests/scratch_folder.h"

namespace spel::server::testing {
namespace {

namespace fs = std::filesystem;

std::string write_file(const std::string& path, const std::string& text) {
  std::ofstream(path) << text;
  return path;
}

TEST(ApiKey, IsAskedForEverywhereButOnThePublicList) {
  const spel::testing::ScratchFolder directory;
  const std::string keys =
      write_file(directory.file("keys"), "# comment\n\nfirst-key-123\nsecond-key-456\r\n");
  const TestServer server(ascii_script("ok"),
                          [&](config::ServerConfig& c) { c.api_keys_file = keys; });
  for (const char* path : {"/health", "/health/live", "/health/ready", "/", "/openapi.json"}) {
    EXPECT_EQ(server.ask(get(path)).status, 200) << path;
  }
  const std::string body = R"({"prompt":"a","max_tokens":1})";
  for (const char* path :
       {"/metrics", "/v1/stats", "/v1/models", "/v1/models/scripted", "/v1/notebanks", "/nowhere",
        "/v1", "//v1/models", "/v1/models/", "/health/../v1/models", "/health/x"}) {
    const Reply reply = server.ask(get(path));
    EXPECT_EQ(reply.status, 401) << path;
    EXPECT_EQ(reply.header("www-authenticate"), "Bearer") << path;
  }
  for (const char* path : {"/v1/completions", "/v1/chat/completions", "/tokenize", "/detokenize"}) {
    EXPECT_EQ(server.ask(post(path, body)).status, 401) << path;
  }
  const auto with = [&](const std::string& value) {
    return server.ask(post("/v1/completions", body, "Authorization: " + value + "\r\n")).status;
  };
  EXPECT_EQ(with("Bearer first-key-123"), 200);
  EXPECT_EQ(with("Bearer second-key-456"), 200);
  EXPECT_EQ(with("Bearer first-key-12"), 401);
  EXPECT_EQ(with("Bearer # comment"), 401);
  EXPECT_EQ(with("Basic first-key-123"), 401);
  EXPECT_EQ(server
                .ask(get("/v1/models",
                         "Authorization: Bearer first-key-123\r\n"
                         "Authorization: Bearer wrong\r\n"))
                .status,
            400);
}

TEST(ApiKey, AFileWithoutAKeyIsRefusedAtStart) {
  const spel::testing::ScratchFolder directory;
  for (const std::string& path :
       {write_file(directory.file("empty"), "\n# none\n"), directory.file("missing")}) {
    EXPECT_THROW(
        TestServer(TestServer::Loading{}, [&](config::ServerConfig& c) { c.api_keys_file = path; }),
        Error);
  }
}

TEST(Origins, AreOffByDefaultAndListedOtherwise) {
  const std::string body = R"({"prompt":"a","max_tokens":1})";
  const std::string preflight =
      "OPTIONS /v1/completions HTTP/1.1\r\nHost: localhost\r\nAccess-Control-Request-Method: "
      "POST\r\nOrigin: ";
  const TestServer closed(ascii_script("ok"));
  const Reply foreign = closed.ask(post("/v1/completions", body, "Origin: https://a.example\r\n"));
  EXPECT_EQ(foreign.status, 403);
  EXPECT_EQ(foreign.header("access-control-allow-origin"), "");
  EXPECT_EQ(
      closed.ask(preflight + "https://a.example\r\n\r\n").header("access-control-allow-origin"),
      "");
  EXPECT_EQ(closed.ask(post("/v1/completions", body, "Origin: http://localhost\r\n")).status, 200);

  const TestServer open(ascii_script("ok"),
                        [](config::ServerConfig& c) { c.cors_origins = {"https://a.example"}; });
  const Reply allowed = open.ask(preflight + "https://a.example\r\n\r\n");
  EXPECT_EQ(allowed.status, 204);
  EXPECT_EQ(allowed.header("access-control-allow-origin"), "https://a.example");
  EXPECT_EQ(allowed.header("access-control-allow-methods"), "POST");
  EXPECT_EQ(allowed.header("vary"), "Origin");
  const Reply client = open.ask(preflight +
                                "https://a.example\r\nAccess-Control-Request-Headers: "
                                "authorization,x-stainless-os\r\n\r\n");
  EXPECT_EQ(client.header("access-control-allow-headers"), "authorization,x-stainless-os");
  EXPECT_EQ(open.ask(preflight + "https://b.example\r\n\r\n").header("access-control-allow-origin"),
            "");
  const Reply used = open.ask(post("/v1/completions", body, "Origin: https://a.example\r\n"));
  EXPECT_EQ(used.status, 200);
  EXPECT_EQ(used.header("access-control-allow-origin"), "https://a.example");
  const Reply error = open.ask(post("/v1/completions", "{", "Origin: https://a.example\r\n"));
  EXPECT_EQ(error.header("access-control-allow-origin"), "https://a.example");
}

TEST(Hosts, OtherNamesAreNotAnswered) {
  const TestServer server(ascii_script("ok"),
                          [](config::ServerConfig& c) { c.allowed_hosts = {"spel"}; });
  const auto with = [&](const std::string& host) {
    return server.ask("GET /health HTTP/1.1\r\nHost: " + host + "\r\n\r\n").status;
  };
  EXPECT_EQ(with("localhost:" + std::to_string(server.port())), 200);
  EXPECT_EQ(with("127.0.0.1"), 200);
  EXPECT_EQ(with("[::1]:80"), 200);
  EXPECT_EQ(with("spel:8080"), 200);
  EXPECT_EQ(with("evil.example"), 403);
  EXPECT_EQ(with(""), 400);
  EXPECT_EQ(server.ask("GET http://evil.example/health HTTP/1.1\r\nHost: localhost\r\n\r\n").status,
            403);
  EXPECT_EQ(server.ask("GET /health HTTP/1.0\r\n\r\n").status, 200);
}

TEST(Models, AnIdWithSlashesIsFoundAsItIsAndEscaped) {
  const TestServer server(ascii_script("ok", '.', "Qwen/Qwen3.5-0.8B"));
  for (const char* path : {"/v1/models/Qwen/Qwen3.5-0.8B", "/v1/models/Qwen%2FQwen3.5-0.8B",
                           "/v1/models/Qwen%2fQwen3.5-0.8B", "//v1/models/Qwen/Qwen3.5-0.8B/"}) {
    const Reply reply = server.ask(get(path));
    ASSERT_EQ(reply.status, 200) << path << reply.body;
    EXPECT_EQ(reply.parsed().at("id"), "Qwen/Qwen3.5-0.8B");
  }
  for (const char* path : {"/v1/models/Qwen", "/v1/models/Qwen/Qwen3.5-0.8B/x", "/v1/models/a%zz",
                           "/v1/models/%", "/v1/models/%ff"}) {
    const Reply reply = server.ask(get(path));
    EXPECT_EQ(reply.status, 404) << path;
    EXPECT_EQ(reply.parsed().at("error").at("code"), "model_not_found") << path;
  }
}

TEST(Paths, AnUnknownOneHasACodeOfItsOwn) {
  const TestServer server(ascii_script("ok"));
  const Reply reply = server.ask(get("/v1/embeddings"));
  EXPECT_EQ(reply.status, 404);
  EXPECT_EQ(reply.parsed().at("error").at("code"), "unknown_path");
}

TEST(UnixSocket, ServesAndCleansUp) {
  const spel::testing::ScratchFolder directory;
  const std::string path = directory.file("s");
  {
    const TestServer server(ascii_script("ok"),
                            [&](config::ServerConfig& c) { c.unix_socket = path; });
    EXPECT_EQ(fs::status(path).permissions() & fs::perms::all,
              fs::perms::owner_read | fs::perms::owner_write);
    Client client(path);
    client.send("GET /health HTTP/1.1\r\nHost: anything.example\r\n\r\n");
    EXPECT_EQ(client.read_reply().status, 200);
    EXPECT_THROW(
        TestServer(TestServer::Loading{}, [&](config::ServerConfig& c) { c.unix_socket = path; }),
        Error)
        << "another server is there";
  }
  EXPECT_FALSE(fs::exists(path));
  write_file(path, "not a socket");
  EXPECT_THROW(
      TestServer(TestServer::Loading{}, [&](config::ServerConfig& c) { c.unix_socket = path; }),
      Error);
  EXPECT_TRUE(fs::exists(path));
}

/// One request over TLS, trusting `certificate`.
std::string ask_tls(std::uint16_t port, const std::string& certificate,
                    const std::string& request) {
  SSL_CTX* context = SSL_CTX_new(TLS_client_method());
  SSL_CTX_load_verify_locations(context, certificate.c_str(), nullptr);
  SSL_CTX_set_verify(context, SSL_VERIFY_PEER, nullptr);
  BIO* bio = BIO_new_ssl_connect(context);
  BIO_set_conn_hostname(bio, ("127.0.0.1:" + std::to_string(port)).c_str());
  std::string reply;
  if (BIO_do_connect(bio) == 1 && BIO_do_handshake(bio) == 1) {
    BIO_write(bio, request.data(), static_cast<int>(request.size()));
    char bytes[4096];
    for (int got = 0; (got = BIO_read(bio, bytes, sizeof(bytes))) > 0;) {
      reply.append(bytes, static_cast<std::size_t>(got));
    }
  }
  BIO_free_all(bio);
  SSL_CTX_free(context);
  return reply;
}

TEST(Tls, ServesStreamsAndRefusesPlainText) {
  const spel::testing::ScratchFolder directory;
  const std::optional<Certificate> made = make_certificate(directory);
  if (!made) {
    GTEST_SKIP() << "the openssl command is not installed";
  }
  const std::string& certificate = made->chain;
  const std::string& key = made->key;
  const TestServer server(ascii_script("ok"), [&](config::ServerConfig& c) {
    c.tls_cert = certificate;
    c.tls_key = key;
    c.header_timeout = milliseconds(500);
  });
  const std::string reply = ask_tls(
      server.port(), certificate,
      post("/v1/completions", R"({"prompt":">","max_tokens":2,"stream":true,"temperature":0})",
           "Connection: close\r\n"));
  EXPECT_TRUE(reply.starts_with("HTTP/1.1 200 OK\r\n")) << reply;
  EXPECT_TRUE(reply.ends_with("0\r\n\r\n"));
  EXPECT_NE(reply.find("[DONE]"), std::string::npos);

  Client plain(server.port());
  plain.send(get("/health"));
  EXPECT_EQ(plain.read_all().find("HTTP/1.1 200"), std::string::npos);
  Client silent(server.port());
  EXPECT_TRUE(silent.closed()) << "a handshake that never comes";

  EXPECT_THROW(TestServer(TestServer::Loading{},
                          [&](config::ServerConfig& c) {
                            c.tls_cert = key;
                            c.tls_key = key;
                          }),
               Error);
}

}  // namespace
}  // namespace spel::server::testing
