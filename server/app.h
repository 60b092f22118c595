// The server in one object: everything between a configuration and an engine.
#pragma once

#include <boost/asio/executor_work_guard.hpp>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "config/server_config.h"
#include "server/context.h"
#include "server/listener.h"
#include "server/workers.h"

namespace spel::server {

/// Listens at once and answers 503 until a backend is set. Public functions from one thread.
class App {
 public:
  /// Throws Error for a configuration that cannot be used (unreadable key file, …).
  App(config::ServerConfig config, const LogOptions& log);
  /// Stops without draining.
  ~App();
  App(const App&) = delete;
  App& operator=(const App&) = delete;

  /// Binds and serves. Throws Error if no address can be bound.
  void start();
  /// The model is there. Once; may be called from the thread that loaded it.
  void set_backend(std::unique_ptr<const Backend> backend);

  [[nodiscard]] std::uint16_t port() const noexcept { return listener_.port(); }
  [[nodiscard]] const std::vector<std::string>& urls() const noexcept { return listener_.urls(); }
  [[nodiscard]] const config::ServerConfig& config() const noexcept { return config_; }
  [[nodiscard]] const Lifecycle& lifecycle() const noexcept { return lifecycle_; }
  [[nodiscard]] Log& log() noexcept { return log_; }
  [[nodiscard]] const Metrics& metrics() const noexcept { return metrics_; }

  // --- Shutdown, in this order; see shutdown.h --------------------------------------------------

  /// Not ready any more, for whoever asks; requests are still taken, and connections end after the
  /// next answer. False if the server was not ready before.
  [[nodiscard]] bool begin_leaving();
  /// No connection and no generation is accepted any more; those there are go on.
  void begin_drain();
  /// True once every connection has ended.
  [[nodiscard]] bool wait_drained(Clock::time_point deadline);
  /// Generations end now; their streams are told so.
  void cancel_generations();
  /// Connections end now.
  void close_connections();
  /// Joins the threads. After it nothing runs any more.
  void stop();

 private:
  [[nodiscard]] ServerContext make_context();

  const config::ServerConfig config_;
  Log log_;
  ApiKeys keys_;
  const HostCheck hosts_;
  const Cors cors_;
  Router router_;
  Metrics metrics_;
  BodyBudget bodies_;
  BodyBudget answers_;
  RequestIds ids_;
  TaskGroup sessions_;

  // The engine's thread posts to the context: it must end first.
  net::io_context io_;
  Lifecycle lifecycle_;
  Workers reading_thread_{1, "reading large bodies"};
  ServerContext context_;
  net::executor_work_guard<net::io_context::executor_type> work_;
  Listener listener_;
  std::vector<std::thread> threads_;
};

}  // namespace spel::server
