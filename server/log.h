// Log lines: one event a line, as text or as JSON, with nothing in them that could forge a line.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

namespace spdlog {
class logger;
namespace details {
class thread_pool;
}
}  // namespace spdlog

namespace spel::server {

enum class LogLevel { kDebug, kInfo, kWarning, kError, kOff };

struct LogOptions {
  LogLevel level = LogLevel::kInfo;
  bool json = false;
};

/// Thread-safe. Lines are written to standard error by a thread of its own and dropped, oldest
/// first, when that cannot keep up: a stuck terminal never stops the server. How many were dropped
/// is a line of its own once there is a reader again.
class Log {
 public:
  using Value = std::variant<std::string_view, std::int64_t, double>;
  using Field = std::pair<std::string_view, Value>;

  /// Throws ThreadError.
  explicit Log(const LogOptions& options);
  /// As close().
  ~Log();
  Log(const Log&) = delete;
  Log& operator=(const Log&) = delete;

  void event(LogLevel level, std::string_view message,
             std::initializer_list<Field> fields = {}) noexcept;
  [[nodiscard]] bool enabled(LogLevel level) const noexcept { return level >= options_.level; }

  /// Writes what is queued and ends the writer; where nobody reads, drops the rest after kPatience.
  /// Events that come later are lost. Idempotent.
  void close() noexcept;

  static constexpr std::chrono::milliseconds kPatience{300};

 private:
  [[nodiscard]] std::string remark_on_losses(std::size_t lost);

  const LogOptions options_;
  std::size_t losses_told_ = 0;  ///< Of the writer's thread.
  std::atomic<bool> closed_{false};
  std::shared_ptr<class LogSink> sink_;
  std::shared_ptr<spdlog::details::thread_pool> pool_;
  std::shared_ptr<spdlog::logger> logger_;
};

/// The line without its end; `now_ms` is Unix time. Pure, for Log and its tests.
[[nodiscard]] std::string format_log_line(bool json, LogLevel level, std::int64_t now_ms,
                                          std::string_view message,
                                          std::initializer_list<Log::Field> fields);

/// Parses "debug" | "info" | "warning" | "error" | "off"; anything else is info.
[[nodiscard]] LogLevel parse_log_level(std::string_view name);

}  // namespace spel::server
