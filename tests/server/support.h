// An in-process server on a free port with a model whose output is written down, and a client that
// says exactly the bytes it is told to.
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "config/server_config.h"
#include "engine/engine.h"
#include "engine/text/tokenizer.h"
#include "tests/engine/scripted_model.h"

namespace spel::server {
class App;
struct Backend;
}  // namespace spel::server

namespace spel::server::testing {

using engine::TokenId;
using nlohmann::json;
using std::chrono::milliseconds;

// --- Client --------------------------------------------------------------------------------------

struct Reply {
  int status = 0;                              ///< 0: no reply.
  std::map<std::string, std::string> headers;  ///< Names in lower case.
  std::string body;
  bool truncated = false;  ///< The body ended before its framing said so.

  [[nodiscard]] json parsed() const { return json::parse(body); }
  [[nodiscard]] std::string header(const std::string& name) const;
  /// error.param, or "" if it is null.
  [[nodiscard]] std::string error_param() const;
};

/// A blocking connection. Every read gives up after `patience`.
class Client {
 public:
  explicit Client(std::uint16_t port, milliseconds patience = milliseconds(10'000));
  explicit Client(const std::string& unix_path);
  ~Client();
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  void send(std::string_view bytes);
  /// One reply: its head, then a body of its length, its chunks, or all up to the end.
  [[nodiscard]] Reply read_reply(bool head_only = false);
  /// The next SSE frame of a chunked reply whose head has been read; "" at its end.
  [[nodiscard]] std::string read_frame();
  /// Status line and fields only.
  [[nodiscard]] Reply read_head();
  /// True if the server closes within `patience`; bytes before that are dropped.
  [[nodiscard]] bool closed(milliseconds patience = milliseconds(5'000));
  /// Everything until the server closes.
  [[nodiscard]] std::string read_all();
  void close();
  /// Closes with a reset.
  void reset();
  void shrink_receive_buffer();

 private:
  [[nodiscard]] bool fill();
  [[nodiscard]] std::optional<std::string> take_line();
  [[nodiscard]] bool take(std::size_t bytes, std::string& into);

  int fd_ = -1;
  milliseconds patience_;
  std::string buffer_;
};

[[nodiscard]] std::string get(std::string_view path, std::string_view fields = {});
[[nodiscard]] std::string post(std::string_view path, std::string_view body,
                               std::string_view fields = {});

/// What a stream of completion chunks amounts to.
struct Streamed {
  std::vector<json> chunks;
  std::string text;  ///< Of choice 0.
  std::string finish_reason;
  bool done = false;  ///< [DONE] came.
  json error;         ///< The error event, if one came.
};
[[nodiscard]] Streamed parse_stream(const std::string& body);

// --- Server --------------------------------------------------------------------------------------

struct Script {
  std::string model_id = "scripted";
  std::vector<std::string> vocabulary;  ///< Empty: ASCII.
  std::optional<TokenId> eos;           ///< With a vocabulary.
  engine::NextToken next;
  std::chrono::microseconds delay{0};
  bool draft = true;
  std::size_t max_seq = 4096;
  std::size_t sequences = 4;
  std::size_t queue = 8;
};

/// ASCII: after the last '>' of the history the characters of `text`, then `filler` for ever.
[[nodiscard]] Script ascii_script(const std::string& text, char filler = '.',
                                  const std::string& model_id = "scripted");
/// Tokens by name: after the last ">" the tokens of `output`, then the last one for ever.
[[nodiscard]] Script token_script(std::vector<std::string> vocabulary,
                                  std::vector<std::string> output, const std::string& eos = {});

[[nodiscard]] std::unique_ptr<const Backend> scripted_backend(const Script& script);

class TestServer {
 public:
  using Adjust = std::function<void(config::ServerConfig&)>;

  explicit TestServer(const Script& script, const Adjust& adjust = {});
  /// Without a model yet.
  struct Loading {};
  explicit TestServer(Loading, const Adjust& adjust = {});
  ~TestServer();

  [[nodiscard]] std::uint16_t port() const;
  /// The rest of what a server can do; include server/app.h.
  [[nodiscard]] App& app() { return *app_; }
  void finish_loading(const Script& script);
  [[nodiscard]] engine::EngineStats stats() const;
  /// One request on a connection of its own.
  [[nodiscard]] Reply ask(const std::string& request) const;
  [[nodiscard]] Reply complete(const json& body) const;
  [[nodiscard]] Streamed stream(json body) const;
  /// A sample of /metrics, by its whole name with labels; NaN if it is not there.
  [[nodiscard]] double metric(const std::string& series) const;
  /// True once nothing runs or waits.
  [[nodiscard]] bool wait_idle(milliseconds patience = milliseconds(5'000)) const;

 private:
  std::unique_ptr<App> app_;
};

/// Polls until `condition` holds.
[[nodiscard]] bool eventually(const std::function<bool()>& condition,
                              milliseconds patience = milliseconds(5'000));

}  // namespace spel::server::testing
