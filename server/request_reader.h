// Reads requests from a connection: header first, the body only when it is wanted.
#pragma once

#include <cstddef>
#include <optional>

#include "config/server_config.h"
#include "server/body_budget.h"
#include "server/connection.h"
#include "server/request_check.h"

namespace spel::server {

[[nodiscard]] proto::ApiError body_too_large(std::size_t limit);

class RequestReader {
 public:
  RequestReader(Connection& connection, const config::ServerConfig& config)
      : connection_(connection), config_(config) {}

  enum class Outcome {
    kOk,
    kClosed,   ///< Nothing to answer.
    kRefused,  ///< refusal() is the answer, and the connection's end.
  };

  /// Waits until `first_byte_by` for a request to begin, then reads its header.
  [[nodiscard]] Task<Outcome> read_head(Clock::time_point first_byte_by);
  /// Reads a body of up to `limit` bytes. Its memory is charged before it is taken.
  [[nodiscard]] Task<Outcome> read_body(std::size_t limit, Body& body);

  [[nodiscard]] Head& head() noexcept { return head_; }
  [[nodiscard]] const proto::ApiError& refusal() const noexcept { return refusal_; }

 private:
  Outcome refuse(proto::ApiError error);
  [[nodiscard]] Task<Outcome> more(Clock::time_point deadline);

  Connection& connection_;
  const config::ServerConfig& config_;
  bool idle_ = true;  ///< Nothing of the next request has come.
  Head head_;
  proto::ApiError refusal_;
};

}  // namespace spel::server
