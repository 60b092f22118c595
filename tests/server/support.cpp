#include "support.h"

#include <algorithm>
#include <arpa/inet.h>
#include <cmath>
#include <cstring>
#include <poll.h>
#include <sstream>
#include <stdexcept>
#include <sys/socket.h>
#include <sys/un.h>
#include <thread>
#include <unistd.h>

#include "api_check.h"
#include "engine/speculate/model_drafter.h"
#include "server/app.h"

namespace spel::server::testing {

// --- Client --------------------------------------------------------------------------------------

std::string Reply::header(const std::string& name) const {
  const auto found = headers.find(name);
  return found == headers.end() ? "" : found->second;
}

std::string Reply::error_param() const {
  const json param = parsed().at("error").at("param");
  return param.is_null() ? "" : param.get<std::string>();
}

Client::Client(std::uint16_t port, milliseconds patience) : patience_(patience) {
  fd_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (::connect(fd_, reinterpret_cast<sockaddr*>(&address), sizeof(address)) != 0) {
    throw std::runtime_error("connect: " + std::string(std::strerror(errno)));
  }
}

Client::Client(const std::string& unix_path) : patience_(10'000) {
  fd_ = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  unix_path.copy(address.sun_path, sizeof(address.sun_path) - 1);
  if (::connect(fd_, reinterpret_cast<sockaddr*>(&address), sizeof(address)) != 0) {
    throw std::runtime_error("connect: " + std::string(std::strerror(errno)));
  }
}

Client::~Client() { close(); }

void Client::close() {
  if (fd_ >= 0) {
    ::close(fd_);
  }
  fd_ = -1;
}

void Client::reset() {
  const linger option{.l_onoff = 1, .l_linger = 0};
  ::setsockopt(fd_, SOL_SOCKET, SO_LINGER, &option, sizeof(option));
  close();
}

void Client::shrink_receive_buffer() {
  const int bytes = 4096;
  ::setsockopt(fd_, SOL_SOCKET, SO_RCVBUF, &bytes, sizeof(bytes));
}

void Client::send(std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t sent = ::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent <= 0) {
      return;  // The server has closed: what it said is still to be read.
    }
    bytes.remove_prefix(static_cast<std::size_t>(sent));
  }
}

bool Client::fill() {
  pollfd poll{.fd = fd_, .events = POLLIN, .revents = 0};
  if (::poll(&poll, 1, static_cast<int>(patience_.count())) <= 0) {
    return false;
  }
  char bytes[16384];
  const ssize_t got = ::recv(fd_, bytes, sizeof(bytes), 0);
  if (got <= 0) {
    return false;
  }
  buffer_.append(bytes, static_cast<std::size_t>(got));
  return true;
}

std::optional<std::string> Client::take_line() {
  std::size_t end = std::string::npos;
  while ((end = buffer_.find("\r\n")) == std::string::npos) {
    if (!fill()) {
      return std::nullopt;
    }
  }
  std::string line = buffer_.substr(0, end);
  buffer_.erase(0, end + 2);
  return line;
}

bool Client::take(std::size_t bytes, std::string& into) {
  while (buffer_.size() < bytes) {
    if (!fill()) {
      return false;
    }
  }
  into.append(buffer_, 0, bytes);
  buffer_.erase(0, bytes);
  return true;
}

Reply Client::read_head() {
  Reply reply;
  const auto line = take_line();
  if (!line || line->size() < 12) {
    return reply;
  }
  reply.status = std::stoi(line->substr(9, 3));
  while (auto field = take_line()) {
    if (field->empty()) {
      break;
    }
    const std::size_t colon = field->find(": ");
    std::string name = field->substr(0, colon);
    std::transform(name.begin(), name.end(), name.begin(),
                   [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
    reply.headers[name] = field->substr(colon + 2);
  }
  return reply;
}

std::string Client::read_frame() {
  std::string frame;
  while (!frame.ends_with("\n\n")) {
    const auto size = take_line();
    if (!size) {
      return frame;
    }
    const std::size_t bytes = std::stoul(*size, nullptr, 16);
    std::string end;
    if (!take(bytes, frame) || !take(2, end) || bytes == 0) {
      return frame;
    }
  }
  return frame;
}

Reply Client::read_reply(bool head_only) {
  Reply reply = read_head();
  if (reply.status == 0 || head_only || reply.status == 204 || reply.status < 200) {
    return reply;
  }
  if (reply.header("transfer-encoding") == "chunked") {
    while (true) {
      const auto size = take_line();
      if (!size) {
        reply.truncated = true;
        break;
      }
      const std::size_t bytes = std::stoul(*size, nullptr, 16);
      std::string end;
      if (!take(bytes, reply.body) || !take(2, end)) {
        reply.truncated = true;
        break;
      }
      if (bytes == 0) {
        break;
      }
    }
  } else if (!reply.header("content-length").empty()) {
    reply.truncated = !take(std::stoul(reply.header("content-length")), reply.body);
  } else {
    reply.body = read_all();
  }
  return reply;
}

std::string Client::read_all() {
  while (fill()) {
  }
  return std::exchange(buffer_, {});
}

bool Client::closed(milliseconds patience) {
  const auto deadline = Clock::now() + patience;
  while (Clock::now() < deadline) {
    pollfd poll{.fd = fd_, .events = POLLIN, .revents = 0};
    if (::poll(&poll, 1, 20) <= 0) {
      continue;
    }
    char bytes[16384];
    if (::recv(fd_, bytes, sizeof(bytes), 0) <= 0) {
      return true;
    }
  }
  return false;
}

std::string get(std::string_view path, std::string_view fields) {
  return "GET " + std::string(path) + " HTTP/1.1\r\nHost: localhost\r\n" + std::string(fields) +
         "\r\n";
}

std::string post(std::string_view path, std::string_view body, std::string_view fields) {
  return "POST " + std::string(path) +
         " HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: " +
         std::to_string(body.size()) + "\r\n" + std::string(fields) + "\r\n" + std::string(body);
}

Streamed parse_stream(const std::string& body) {
  Streamed result;
  std::size_t begin = 0;
  while (begin < body.size()) {
    const std::size_t end = std::min(body.find("\n\n", begin), body.size());
    const std::string frame = body.substr(begin, end - begin);
    begin = end + 2;
    if (frame == "data: [DONE]") {
      result.done = true;
      continue;
    }
    const json chunk = json::parse(frame.substr(6));
    expect_event_as_described(chunk);
    if (chunk.contains("error")) {
      result.error = chunk.at("error");
      continue;
    }
    result.chunks.push_back(chunk);
    for (const json& choice : chunk.at("choices")) {
      if (choice.at("index") != 0) {
        continue;
      }
      if (choice.contains("text")) {
        result.text += choice.at("text").get<std::string>();
      } else if (choice.at("delta").contains("content")) {
        result.text += choice.at("delta").at("content").get<std::string>();
      }
      if (!choice.at("finish_reason").is_null()) {
        result.finish_reason = choice.at("finish_reason").get<std::string>();
      }
    }
  }
  return result;
}

// --- Server --------------------------------------------------------------------------------------

namespace {

engine::NextToken after_marker(TokenId marker, std::vector<TokenId> output, TokenId filler) {
  return [marker, output = std::move(output), filler](std::span<const TokenId> history) {
    std::size_t since = 0;
    while (since < history.size() && history[history.size() - 1 - since] != marker) {
      ++since;
    }
    return since < output.size() ? output[since] : filler;
  };
}

config::ServerConfig test_config(const TestServer::Adjust& adjust) {
  config::ServerConfig config;
  config.port = 0;
  config.log_level = "off";
  if (adjust) {
    adjust(config);
  }
  return config;
}

}  // namespace

Script ascii_script(const std::string& text, char filler, const std::string& model_id) {
  Script script;
  script.model_id = model_id;
  script.next = after_marker('>', {text.begin(), text.end()}, filler);
  return script;
}

Script token_script(std::vector<std::string> vocabulary, std::vector<std::string> output,
                    const std::string& eos) {
  const auto id_of = [&](const std::string& name) {
    return static_cast<TokenId>(std::find(vocabulary.begin(), vocabulary.end(), name) -
                                vocabulary.begin());
  };
  std::vector<TokenId> ids;
  for (const std::string& name : output) {
    ids.push_back(id_of(name));
  }
  Script script;
  script.next = after_marker(id_of(">"), ids, ids.back());
  if (!eos.empty()) {
    script.eos = id_of(eos);
  }
  script.vocabulary = std::move(vocabulary);
  return script;
}

std::unique_ptr<const Backend> scripted_backend(const Script& script) {
  std::shared_ptr<const engine::Tokenizer> tokenizer =
      script.vocabulary.empty() ? engine::make_ascii_tokenizer()
                                : engine::make_list_tokenizer(script.vocabulary, script.eos);
  engine::ScriptedModelOptions options;
  options.vocab_size = tokenizer->vocab_size();
  options.max_seq = script.max_seq;
  options.delay_per_pass = script.delay;
  engine::EngineConfig config;
  config.sequences = script.sequences;
  config.queue_capacity = script.queue;
  config.calibrate = false;
  auto target = engine::make_scripted_model(options, script.next);
  options.delay_per_pass = {};
  auto draft = script.draft ? engine::make_scripted_model(options, script.next) : nullptr;

  auto backend = std::make_unique<Backend>();
  backend->model_id = script.model_id;
  backend->created = 1'700'000'000;
  backend->parameters = 1000;
  backend->draft_parameters = script.draft ? 100 : 0;
  backend->weights_dtype = "f32";
  backend->fingerprint = "spel-test";
  backend->isa = "scalar";
  backend->kernel = "scalar";
  backend->numerics = "strict";
  backend->engine = std::make_unique<engine::Engine>(
      config, std::move(target), engine::make_model_drafter("ternary", std::move(draft)),
      std::move(tokenizer));
  return backend;
}

TestServer::TestServer(const Script& script, const Adjust& adjust) : TestServer(Loading{}, adjust) {
  finish_loading(script);
}

TestServer::TestServer(Loading, const Adjust& adjust)
    : app_(std::make_unique<App>(test_config(adjust), LogOptions{LogLevel::kOff, false})) {
  app_->start();
}

TestServer::~TestServer() = default;

std::uint16_t TestServer::port() const { return app_->port(); }

void TestServer::finish_loading(const Script& script) {
  app_->set_backend(scripted_backend(script));
}

engine::EngineStats TestServer::stats() const {
  return app_->lifecycle().backend()->engine->stats();
}

Reply TestServer::ask(const std::string& request) const {
  Client client(port());
  client.send(request);
  Reply reply = client.read_reply();
  expect_as_described(request, reply);
  return reply;
}

Reply TestServer::complete(const json& body) const {
  return ask(post("/v1/completions", body.dump()));
}

Streamed TestServer::stream(json body) const {
  body["stream"] = true;
  return parse_stream(complete(body).body);
}

double TestServer::metric(const std::string& series) const {
  std::istringstream lines(ask(get("/metrics", "Connection: close\r\n")).body);
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with(series + " ")) {
      return std::stod(line.substr(series.size() + 1));
    }
  }
  return std::nan("");
}

bool TestServer::wait_idle(milliseconds patience) const {
  return app_->lifecycle().backend()->engine->wait_idle(Clock::now() + patience);
}

bool eventually(const std::function<bool()>& condition, milliseconds patience) {
  const auto deadline = Clock::now() + patience;
  while (!condition()) {
    if (Clock::now() >= deadline) {
      return false;
    }
    std::this_thread::sleep_for(milliseconds(2));
  }
  return true;
}

}  // namespace spel::server::testing
