#include "server/metrics.h"

#include <algorithm>
#include <cmath>
#include <prometheus/counter.h>
#include <prometheus/histogram.h>
#include <prometheus/metric_family.h>
#include <prometheus/registry.h>

#include "server/retry_after.h"

namespace spel::server {
namespace {

using prometheus::BuildCounter;
using prometheus::BuildHistogram;
using Buckets = prometheus::Histogram::BucketBoundaries;

/// vLLM's edges, so that its dashboards and tools fit.
const Buckets& first_token_buckets() {
  static const Buckets kEdges{.001, .005, .01, .02, .04, .06, .08, .1, .25, .5,  .75,
                              1,    2.5,  5,   7.5, 10,  20,  40,  80, 160, 640, 2560};
  return kEdges;
}

const Buckets& inter_token_buckets() {
  static const Buckets kEdges{.01, .025, .05, .075, .1,  .15, .2, .3, .4, .5,
                              .75, 1,    2.5, 5,    7.5, 10,  20, 40, 80};
  return kEdges;
}

const Buckets& request_buckets() {
  static const Buckets kEdges{.3, .5, .8, 1,  1.5, 2,   2.5, 5,   10,  15,
                              20, 30, 40, 50, 60,  120, 240, 480, 960, 1920};
  return kEdges;
}

constexpr std::array<const char*, 6> kStatusNames = {"1xx", "2xx", "3xx",
                                                     "4xx", "5xx", "disconnected"};
constexpr std::size_t kDisconnected = 5;

/// Negative or not a number would stick in a sum for ever.
double sane(double seconds) { return std::isfinite(seconds) ? std::max(seconds, 0.0) : 0.0; }

}  // namespace

Metrics::Metrics() : registry_(std::make_unique<prometheus::Registry>()) {
  first_token_ = &BuildHistogram()
                      .Name("spel_time_to_first_token_seconds")
                      .Help("From the reading of the request's header to its first token.")
                      .Register(*registry_)
                      .Add({}, first_token_buckets());
  inter_token_ = &BuildHistogram()
                      .Name("spel_inter_token_latency_seconds")
                      .Help("Between tokens; tokens that arrive together share the wait equally.")
                      .Register(*registry_)
                      .Add({}, inter_token_buckets());
  end_to_end_ =
      &BuildHistogram()
           .Name("spel_e2e_request_latency_seconds")
           .Help("From the reading of the request's header to its last token, however it ended.")
           .Register(*registry_)
           .Add({}, request_buckets());
  queue_time_ = &BuildHistogram()
                     .Name("spel_request_queue_time_seconds")
                     .Help("Waiting for a free sequence.")
                     .Register(*registry_)
                     .Add({}, request_buckets());
}

Metrics::~Metrics() = default;

void Metrics::add_routes(const std::vector<std::string>& routes) {
  auto& requests = BuildCounter()
                       .Name("spel_http_requests_total")
                       .Help(
                           "HTTP requests, by route and status class; disconnected: the client "
                           "left before there was an answer.")
                       .Register(*registry_);
  std::vector<std::string> labels = routes;
  labels.emplace_back("none");
  for (const std::string& route : labels) {
    StatusClasses& classes = requests_.emplace_back();
    for (std::size_t i = 0; i < kStatusNames.size(); ++i) {
      classes[i] = &requests.Add({{"route", route}, {"status", kStatusNames[i]}});
    }
  }
}

void Metrics::count_request(std::size_t route, int status) noexcept {
  const StatusClasses& classes = requests_[std::min(route, requests_.size() - 1)];
  const std::size_t place =
      status == 0 ? kDisconnected : static_cast<std::size_t>(std::clamp(status / 100, 1, 5) - 1);
  classes[place]->Increment();
}

void Metrics::connection_opened() noexcept { ++counters_.connections; }

void Metrics::connection_closed() noexcept { --counters_.connections; }

void Metrics::connection_refused() noexcept { ++counters_.connections_refused; }

void Metrics::count_unknown_fields(std::size_t fields) noexcept {
  counters_.unknown_fields += fields;
}

void Metrics::observe_first_token(double seconds) noexcept { first_token_->Observe(sane(seconds)); }

void Metrics::observe_tokens(double seconds, std::size_t tokens) noexcept {
  for (std::size_t i = 0; i < tokens; ++i) {
    inter_token_->Observe(sane(seconds) / static_cast<double>(tokens));
  }
}

void Metrics::observe_finish(const engine::FinishEvent& finish, double seconds) noexcept {
  end_to_end_->Observe(sane(seconds));
  queue_time_->Observe(sane(finish.stats.queue_seconds));
  counters_.generated[static_cast<std::size_t>(result_of(finish.reason))] +=
      finish.stats.completion_tokens;
  const double speedup = sane(finish.stats.speedup());
  if (speedup > 0.0) {  // Known, and there were proposals.
    const double taken = sane(finish.stats.decode_seconds);
    counters_.speculated_seconds += taken;
    counters_.speculated_plain_seconds += taken * speedup;
  }
  const double held = sane(finish.stats.prefill_seconds + finish.stats.decode_seconds);
  if (result_of(finish.reason) == Result::kOk && held > 0.0) {
    // Two at once may lose one: it is a mean.
    const double mean = service_seconds_;
    service_seconds_ = mean > 0.0 ? mean + kServiceWeight * (held - mean) : held;
  }
}

std::uint64_t Metrics::requests() const noexcept {
  double sum = 0.0;
  for (const StatusClasses& classes : requests_) {
    for (const prometheus::Counter* counter : classes) {
      sum += counter->Value();
    }
  }
  return static_cast<std::uint64_t>(sum);
}

std::vector<prometheus::MetricFamily> Metrics::collect() const { return registry_->Collect(); }

}  // namespace spel::server
