// Standard error as something to write lines to that holds nobody up.
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <spdlog/details/null_mutex.h>
#include <spdlog/sinks/base_sink.h>
#include <string>
#include <string_view>
#include <utility>

namespace spel::server {

/// The writer's thread only, but for give_up_at().
class LogSink final : public spdlog::sinks::base_sink<spdlog::details::null_mutex> {
 public:
  using Clock = std::chrono::steady_clock;

  /// `remark` is asked after each line for one to be written as well; empty: none.
  explicit LogSink(std::function<std::string()> remark) : remark_(std::move(remark)) {}

  /// Waits for a reader no longer than until then: what cannot be written is dropped. Any thread.
  void give_up_at(Clock::time_point deadline) noexcept {
    deadline_.store(deadline.time_since_epoch().count());
  }

 protected:
  void sink_it_(const spdlog::details::log_msg& message) override;
  void flush_() override {}

 private:
  /// False: it could not be written whole.
  [[nodiscard]] bool write(std::string_view text) const;
  [[nodiscard]] bool wait_for_room() const;

  const std::function<std::string()> remark_;
  std::atomic<Clock::rep> deadline_{Clock::time_point::max().time_since_epoch().count()};
};

}  // namespace spel::server
