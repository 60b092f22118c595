// What the server itself counts and times.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "config/base/names.h"
#include "engine/request/request.h"

namespace prometheus {
class Counter;
class Histogram;
class Registry;
struct MetricFamily;
}  // namespace prometheus

namespace spel::server {

/// How a generation ended.
enum class Result { kOk, kError, kCancelled };

[[nodiscard]] inline Result result_of(engine::FinishReason reason) {
  switch (reason) {
    case engine::FinishReason::kStop:
    case engine::FinishReason::kLength:
      return Result::kOk;
    case engine::FinishReason::kCancelled:
      return Result::kCancelled;
    case engine::FinishReason::kDeadline:
    case engine::FinishReason::kError:
      break;
  }
  return Result::kError;
}

}  // namespace spel::server

template <>
inline constexpr std::array<std::pair<spel::server::Result, std::string_view>, 3>
    spel::kNames<spel::server::Result>{{{spel::server::Result::kOk, "ok"},
                                        {spel::server::Result::kError, "error"},
                                        {spel::server::Result::kCancelled, "cancelled"}}};

namespace spel::server {

/// What figures.h has of it in its table.
struct OwnCounters {
  std::atomic<std::size_t> connections{0};  ///< Open now.
  std::atomic<std::uint64_t> connections_refused{0};
  std::atomic<std::uint64_t> unknown_fields{0};
  /// Tokens of generations that have ended, by Result.
  std::array<std::atomic<std::uint64_t>, kNames<Result>.size()> generated{};
  /// Decoding of ended generations that had proposals, and what it would have taken without.
  std::atomic<double> speculated_seconds{0.0};
  std::atomic<double> speculated_plain_seconds{0.0};
};

/// Thread-safe. All series exist from the start, with label values from fixed sets; what clients
/// send never becomes one. Reading
/// changes nothing.
class Metrics {
 public:
  Metrics();
  ~Metrics();
  Metrics(const Metrics&) = delete;
  Metrics& operator=(const Metrics&) = delete;
  /// `routes`: the router's patterns, by index. Once, before the first request.
  void add_routes(const std::vector<std::string>& routes);

  static constexpr std::size_t kNoRoute = static_cast<std::size_t>(-1);
  /// `status` 0: the client left before there was an answer.
  void count_request(std::size_t route, int status) noexcept;

  void connection_opened() noexcept;
  void connection_closed() noexcept;
  void connection_refused() noexcept;
  void count_unknown_fields(std::size_t fields) noexcept;

  /// The first token, so long after the request's header had been read.
  void observe_first_token(double seconds) noexcept;
  /// `tokens` arrived together, `seconds` after those before them.
  void observe_tokens(double seconds, std::size_t tokens) noexcept;
  /// A generation ended, so long after the request's header had been read.
  void observe_finish(const engine::FinishEvent& finish, double seconds) noexcept;

  /// How long a generation has lately held its place, prefill and decoding; 0: none has ended yet.
  [[nodiscard]] double service_seconds() const noexcept { return service_seconds_; }

  [[nodiscard]] const OwnCounters& counters() const noexcept { return counters_; }
  /// HTTP requests, over all routes.
  [[nodiscard]] std::uint64_t requests() const noexcept;
  /// The histograms, and the requests by route and status class.
  [[nodiscard]] std::vector<prometheus::MetricFamily> collect() const;

 private:
  /// 1xx … 5xx, and requests whose client left before there was an answer.
  using StatusClasses = std::array<prometheus::Counter*, 6>;

  std::unique_ptr<prometheus::Registry> registry_;
  std::vector<StatusClasses> requests_;  ///< By route; the last is for no route.
  prometheus::Histogram* first_token_;
  prometheus::Histogram* inter_token_;
  prometheus::Histogram* end_to_end_;
  prometheus::Histogram* queue_time_;
  OwnCounters counters_;
  std::atomic<double> service_seconds_{0.0};
};

}  // namespace spel::server
