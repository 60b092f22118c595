// What an HTTP/1.x header must be before anything is done with it.
//
// Beast's parser is lenient in places where servers disagree, and disagreement is what request
// smuggling lives on. Everything here is decided on the raw bytes, before Beast sees them; the
// answer to anything doubtful is a refusal and the connection's end.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>

#include "proto/error_body.h"
#include "server/message.h"

namespace spel::server {

struct HeadLimits {
  std::size_t bytes = 8192;
  std::size_t fields = 100;
};

/// Finds the end of a header in bytes that arrive piecemeal, and refuses as early as possible:
/// a client that sends rubbish does not get to wait for a time-out.
class HeadScanner {
 public:
  explicit HeadScanner(const HeadLimits& limits) : limits_(limits) {}

  enum class State { kIncomplete, kComplete, kRefused };
  /// `bytes` starts where the request starts and has what earlier calls had.
  [[nodiscard]] State scan(std::string_view bytes);

  /// Of the complete header, its empty line included.
  [[nodiscard]] std::size_t size() const noexcept { return at_; }
  [[nodiscard]] const proto::ApiError& refusal() const noexcept { return refusal_; }

 private:
  State refuse(int status, std::string message);

  const HeadLimits limits_;
  std::size_t at_ = 0;          ///< Bytes looked at.
  std::size_t line_start_ = 0;  ///< Of the current line.
  std::size_t lines_ = 0;       ///< Complete ones.
  proto::ApiError refusal_;
};

/// What follows from a complete header.
struct Head {
  Request request;  ///< Without body; `path` normalised.
  std::optional<std::uint64_t> content_length;
  bool chunked = false;
  bool expects_continue = false;

  [[nodiscard]] bool has_body() const noexcept { return chunked || content_length.value_or(0) > 0; }
};

[[nodiscard]] std::variant<Head, proto::ApiError> check_head(std::string_view head);

/// "//" becomes "/", and a "/" at the end goes. Paths are compared as they are, never decoded.
[[nodiscard]] std::string normalize_path(std::string_view path);

}  // namespace spel::server
