// Threads whose absence is explained.
#pragma once

#include <string>
#include <system_error>
#include <thread>
#include <utility>

#include "config/base/error.h"

namespace spel {

/// The system would not give a thread: a limit on processes, or no memory for its stack.
class ThreadError : public Error {
 public:
  ThreadError(const std::string& what, const std::string& why)
      : Error(ErrorCode::kUnavailable, "cannot start " + what + ": " + why) {}
};

/// A std::thread that is `what` ("the engine's thread"). Throws ThreadError.
template <typename Body>
[[nodiscard]] std::thread start_thread(const std::string& what, Body&& body) {
  try {
    return std::thread(std::forward<Body>(body));
  } catch (const std::system_error& error) {
    throw ThreadError(what, error.code().message());
  }
}

}  // namespace spel
