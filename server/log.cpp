#include "server/log.h"

#include <array>
#include <charconv>
#include <chrono>
#include <ctime>
#include <spdlog/async_logger.h>
#include <spdlog/details/thread_pool.h>
#include <system_error>
#include <utility>

#include "config/base/thread.h"
#include "proto/text_assembler.h"
#include "server/log_sink.h"

namespace spel::server {
namespace {

constexpr std::size_t kQueuedLines = 8192;

std::string_view level_name(LogLevel level) {
  switch (level) {
    case LogLevel::kDebug:
      return "debug";
    case LogLevel::kInfo:
      return "info";
    case LogLevel::kWarning:
      return "warning";
    case LogLevel::kError:
    case LogLevel::kOff:
      break;
  }
  return "error";
}

std::int64_t unix_ms() {
  return std::chrono::duration_cast<std::chrono::milliseconds>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

void append_time(std::string& out, std::int64_t now_ms) {
  const auto seconds = static_cast<std::time_t>(now_ms / 1000);
  std::tm parts{};
  (void)gmtime_r(&seconds, &parts);
  std::array<char, 32> text{};
  const std::size_t size = std::strftime(text.data(), text.size(), "%Y-%m-%dT%H:%M:%S", &parts);
  out.append(text.data(), size);
  const std::string millis = std::to_string(1000 + now_ms % 1000);
  out.append(".").append(millis, 1).append("Z");
}

/// Control characters, quotes and backslashes as JSON writes them; the rest must be valid UTF-8.
void append_escaped(std::string& out, std::string_view text) {
  constexpr std::string_view kHex = "0123456789abcdef";
  const std::string valid =
      proto::is_valid_utf8(text) ? std::string(text) : proto::to_valid_utf8(text);
  for (const char c : valid) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      out.append({'\\', c});
    } else if (byte < 0x20 || byte == 0x7f) {
      out.append("\\u00").append({kHex[byte >> 4U], kHex[byte & 15U]});
    } else {
      out.push_back(c);
    }
  }
}

void append_number(std::string& out, const Log::Value& value) {
  std::array<char, 32> text{};
  const auto result = std::visit(
      [&](const auto& number) {
        using T = std::decay_t<decltype(number)>;
        if constexpr (std::is_same_v<T, double>) {
          return std::to_chars(text.data(), text.data() + text.size(), number,
                               std::chars_format::fixed, 6);
        } else if constexpr (std::is_same_v<T, std::int64_t>) {
          return std::to_chars(text.data(), text.data() + text.size(), number);
        } else {
          return std::to_chars_result{text.data(), std::errc()};
        }
      },
      value);
  out.append(text.data(), result.ptr);
}

void append_value(std::string& out, const Log::Value& value, bool json) {
  const auto* text = std::get_if<std::string_view>(&value);
  if (text == nullptr) {
    append_number(out, value);
    return;
  }
  const bool plain = !json && !text->empty() && text->find_first_of(" =\"") == text->npos;
  if (!plain) {
    out.push_back('"');
  }
  append_escaped(out, *text);
  if (!plain) {
    out.push_back('"');
  }
}

}  // namespace

std::string format_log_line(bool json, LogLevel level, std::int64_t now_ms,
                            std::string_view message, std::initializer_list<Log::Field> fields) {
  std::string out;
  out.reserve(160);
  if (json) {
    out.append("{\"time\":\"");
    append_time(out, now_ms);
    out.append("\",\"level\":\"").append(level_name(level)).append("\",\"message\":\"");
    append_escaped(out, message);
    out.push_back('"');
    for (const auto& [name, value] : fields) {
      out.append(",\"").append(name).append("\":");
      append_value(out, value, true);
    }
    out.push_back('}');
    return out;
  }
  append_time(out, now_ms);
  out.append(" ").append(level_name(level)).append(" ");
  append_escaped(out, message);
  for (const auto& [name, value] : fields) {
    out.append(" ").append(name).append("=");
    append_value(out, value, false);
  }
  return out;
}

LogLevel parse_log_level(std::string_view name) {
  if (name == "debug" || name == "trace") {
    return LogLevel::kDebug;
  }
  if (name == "warning" || name == "warn") {
    return LogLevel::kWarning;
  }
  if (name == "error" || name == "critical") {
    return LogLevel::kError;
  }
  return name == "off" ? LogLevel::kOff : LogLevel::kInfo;
}

Log::Log(const LogOptions& options) : options_(options) {
  if (options_.level == LogLevel::kOff) {
    return;
  }
  try {
    pool_ = std::make_shared<spdlog::details::thread_pool>(kQueuedLines, 1U);
  } catch (const std::system_error& error) {
    throw ThreadError("the log's writer", error.code().message());
  }
  // By its address: close() takes the pointer away while the writer still ends.
  sink_ = std::make_shared<LogSink>(
      [this, pool = pool_.get()] { return remark_on_losses(pool->overrun_counter()); });
  logger_ = std::make_shared<spdlog::async_logger>("spel", sink_, pool_,
                                                   spdlog::async_overflow_policy::overrun_oldest);
  logger_->set_pattern("%v");
  logger_->set_level(spdlog::level::trace);
  logger_->set_error_handler([](const std::string&) {});  // It would write to standard error.
}

Log::~Log() { close(); }

void Log::close() noexcept {
  closed_ = true;
  if (pool_ != nullptr) {
    sink_->give_up_at(LogSink::Clock::now() + kPatience);
    // The pool's end joins the writer, which writes with what is still there.
    pool_.reset();
  }
}

std::string Log::remark_on_losses(std::size_t lost) {
  if (lost == losses_told_) {
    return {};
  }
  const auto lines = static_cast<std::int64_t>(lost - std::exchange(losses_told_, lost));
  return format_log_line(options_.json, LogLevel::kWarning, unix_ms(),
                         "log lines were dropped: nobody read standard error", {{"lines", lines}});
}

void Log::event(LogLevel level, std::string_view message,
                std::initializer_list<Field> fields) noexcept {
  if (!enabled(level) || logger_ == nullptr || closed_) {
    return;
  }
  try {
    logger_->log(spdlog::level::info,
                 format_log_line(options_.json, level, unix_ms(), message, fields));
  } catch (...) {
    // A line that cannot be written is lost; the request it tells about is not.
  }
}

}  // namespace spel::server
