// The one error type that crosses module borders.
#pragma once

#include <stdexcept>
#include <string>
#include <utility>

namespace spel {

/// What went wrong, coarse enough for a caller to decide what to do about it.
enum class ErrorCode {
  kInvalidArgument,  ///< The caller's input is wrong; retrying it will not help.
  kNotFound,         ///< The thing named does not exist.
  kCorrupt,          ///< A file or record does not have the form it claims.
  kIo,               ///< The operating system refused; `what()` has its words.
  kUnavailable,      ///< Full or shutting down; retrying later may help.
  kInternal,         ///< A bug of ours.
};

/// A user mistake or an I/O failure. The message says what was expected, what was found and what
/// to do; it may hold file paths, so it goes to the log or the terminal, never into a response.
class Error : public std::runtime_error {
 public:
  Error(ErrorCode code, const std::string& message) : std::runtime_error(message), code_(code) {}

  [[nodiscard]] ErrorCode code() const noexcept { return code_; }

 private:
  ErrorCode code_;
};

}  // namespace spel
