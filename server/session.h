// One connection: request after request, each answered before the next is looked at.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "server/connection.h"
#include "server/context.h"
#include "server/exchange.h"
#include "server/request_reader.h"
#include "server/task_group.h"

namespace spel::server {

struct SessionOptions {
  bool spare = false;      ///< Let in beyond the cap: probes only, and briefly.
  bool check_host = true;  ///< False for Unix sockets, which no web page can reach.
};

/// Keeps itself alive while it runs.
class Session final : public Exchange,
                      public TaskGroup::Member,
                      public std::enable_shared_from_this<Session> {
 public:
  Session(ServerContext& context, std::unique_ptr<Transport> transport,
          const SessionOptions& options);

  void start();
  void stop(StopKind kind) override;

  // Exchange.
  [[nodiscard]] const Request& request() const noexcept override { return request_; }
  [[nodiscard]] Body take_body() override { return std::exchange(body_, {}); }
  [[nodiscard]] const Executor& executor() const noexcept override {
    return connection_->executor();
  }
  [[nodiscard]] Task<bool> send(Response response) override;
  [[nodiscard]] Task<bool> begin_stream(Response head) override;
  [[nodiscard]] Task<bool> write_stream(std::string_view bytes) override;
  [[nodiscard]] Task<bool> end_stream() override;
  void abort_stream() override { close_ = true; }
  void watch(std::function<void()> on_closed) override { connection_->watch(std::move(on_closed)); }

 private:
  enum class Answer { kNone, kStreaming, kComplete };

  [[nodiscard]] Task<void> run();
  [[nodiscard]] Task<void> serve_one();
  /// What the header alone decides: the route's handler, or an answer.
  [[nodiscard]] std::optional<Response> judge_head(const Handler*& handler);
  [[nodiscard]] Task<bool> receive_body();
  [[nodiscard]] Task<void> handle(const Handler& handler);
  void begin_request();
  void finish_request();
  [[nodiscard]] Response failure(std::exception_ptr error);
  [[nodiscard]] std::string head_bytes(Response& response, Framing framing);
  [[nodiscard]] std::string_view date();

  ServerContext& context_;
  const SessionOptions options_;
  std::shared_ptr<Connection> connection_;
  RequestReader reader_;

  Request request_;
  Body body_;
  const Route* route_ = nullptr;
  Answer answer_ = Answer::kNone;
  Framing framing_ = Framing::kLength;
  int status_ = 0;
  std::size_t bytes_out_ = 0;
  Clock::time_point began_;

  bool body_done_ = true;  ///< The request in progress has been read to its end.
  bool idle_ = true;       ///< Between requests.
  bool draining_ = false;  ///< The request in progress is the last.
  bool close_ = false;     ///< The connection ends after this request.
  std::int64_t date_second_ = -1;
  std::string date_;
};

}  // namespace spel::server
