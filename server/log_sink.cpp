#include "server/log_sink.h"

#include <algorithm>
#include <cerrno>
#include <climits>
#include <poll.h>
#include <unistd.h>

namespace spel::server {
namespace {

/// How often a writer that waits for a reader asks whether it still may.
constexpr int kPollMs = 50;

}  // namespace

void LogSink::sink_it_(const spdlog::details::log_msg& message) {
  spdlog::memory_buf_t line;
  formatter_->format(message, line);
  if (!write({line.data(), line.size()})) {
    return;
  }
  if (const std::string remark = remark_(); !remark.empty()) {
    (void)write(remark + "\n");
  }
}

bool LogSink::write(std::string_view text) const {
  while (!text.empty()) {
    if (!wait_for_room()) {
      return false;
    }
    // A pipe with room takes this much without blocking, however full it is.
    const ssize_t written =
        ::write(STDERR_FILENO, text.data(), std::min<std::size_t>(text.size(), PIPE_BUF));
    if (written < 0 && errno != EINTR && errno != EAGAIN) {
      return false;  // Nobody reads any more, or a full disk: there is nowhere to complain.
    }
    text.remove_prefix(written > 0 ? static_cast<std::size_t>(written) : 0);
  }
  return true;
}

bool LogSink::wait_for_room() const {
  while (true) {
    // Once it is over nothing is waited for: thousands of lines may still be queued.
    const bool over = Clock::now().time_since_epoch().count() >= deadline_.load();
    pollfd error_output{.fd = STDERR_FILENO, .events = POLLOUT, .revents = 0};
    if (::poll(&error_output, 1, over ? 0 : kPollMs) > 0) {
      return true;
    }
    if (over) {
      return false;
    }
  }
}

}  // namespace spel::server
