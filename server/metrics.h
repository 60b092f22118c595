// What Prometheus scrapes.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "config/base/names.h"
#include "engine/request/request.h"
#include "server/result.h"

namespace prometheus {
class Counter;
class Gauge;
class Histogram;
class Registry;
}  // namespace prometheus

namespace spel::server {

struct Snapshot;

/// Thread-safe. All series exist from the start, with label values from fixed sets; what clients
/// send never becomes one. A scrape reads and changes nothing.
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

  /// The page, in Prometheus' text format: what is counted here, and figures.h.
  [[nodiscard]] std::string scrape(const Snapshot& snapshot) const;

  [[nodiscard]] std::size_t connections() const noexcept;
  [[nodiscard]] std::uint64_t unknown_fields() const noexcept;
  [[nodiscard]] std::uint64_t requests() const noexcept;

 private:
  /// 1xx … 5xx, and requests whose client left before there was an answer.
  using StatusClasses = std::array<prometheus::Counter*, 6>;

  std::unique_ptr<prometheus::Registry> registry_;
  std::vector<StatusClasses> requests_;  ///< By route; the last is for no route.
  prometheus::Gauge* connections_;
  prometheus::Counter* refused_;
  prometheus::Counter* unknown_fields_;
  prometheus::Histogram* first_token_;
  prometheus::Histogram* inter_token_;
  prometheus::Histogram* end_to_end_;
  prometheus::Histogram* queue_time_;
  std::array<prometheus::Counter*, kNames<Result>.size()> generated_{};  ///< By Result.
  prometheus::Counter* speculated_;  ///< Seconds, and those without proposals.
  prometheus::Counter* speculated_plain_;
  std::atomic<double> service_seconds_{0.0};
};

}  // namespace spel::server
