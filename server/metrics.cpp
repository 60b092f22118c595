#include "server/metrics.h"

#include <algorithm>
#include <cmath>
#include <prometheus/counter.h>
#include <prometheus/gauge.h>
#include <prometheus/histogram.h>
#include <prometheus/registry.h>
#include <prometheus/text_serializer.h>

#include "server/figures.h"
#include "server/retry_after.h"

namespace spel::server {
namespace {

using prometheus::BuildCounter;
using prometheus::BuildGauge;
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
  connections_ = &BuildGauge()
                      .Name("spel_http_connections")
                      .Help("Client connections open now.")
                      .Register(*registry_)
                      .Add({});
  refused_ = &BuildCounter()
                  .Name("spel_http_connections_refused_total")
                  .Help("Connections turned away because too many were open.")
                  .Register(*registry_)
                  .Add({});
  unknown_fields_ = &BuildCounter()
                         .Name("spel_unknown_fields_total")
                         .Help("Members of request bodies that are not known and were ignored.")
                         .Register(*registry_)
                         .Add({});
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
  auto& generated = BuildCounter()
                        .Name("spel_request_generation_tokens_total")
                        .Help("Tokens of generations that have ended, by how they ended.")
                        .Register(*registry_);
  for (const auto& [result, name] : kNames<Result>) {
    generated_[static_cast<std::size_t>(result)] = &generated.Add({{"result", std::string(name)}});
  }
  speculated_ = &BuildCounter()
                     .Name("spel_speculated_seconds_total")
                     .Help("Decoding of ended generations with proposals whose speedup is known.")
                     .Register(*registry_)
                     .Add({});
  speculated_plain_ = &BuildCounter()
                           .Name("spel_speculated_plain_seconds_total")
                           .Help("What their decoding would have taken without proposals.")
                           .Register(*registry_)
                           .Add({});
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

void Metrics::connection_opened() noexcept { connections_->Increment(); }

void Metrics::connection_closed() noexcept { connections_->Decrement(); }

void Metrics::connection_refused() noexcept { refused_->Increment(); }

std::size_t Metrics::connections() const noexcept {
  return static_cast<std::size_t>(connections_->Value());
}

std::uint64_t Metrics::unknown_fields() const noexcept {
  return static_cast<std::uint64_t>(unknown_fields_->Value());
}

void Metrics::count_unknown_fields(std::size_t fields) noexcept {
  unknown_fields_->Increment(static_cast<double>(fields));
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
  generated_[static_cast<std::size_t>(result_of(finish.reason))]->Increment(
      static_cast<double>(finish.stats.completion_tokens));
  const double speedup = sane(finish.stats.speedup());
  if (speedup > 0.0) {  // Known, and there were proposals.
    const double taken = sane(finish.stats.decode_seconds);
    speculated_->Increment(taken);
    speculated_plain_->Increment(taken * speedup);
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

std::string Metrics::scrape(const Snapshot& snapshot) const {
  std::vector<prometheus::MetricFamily> families = registry_->Collect();
  for (prometheus::MetricFamily& family : metric_families(snapshot)) {
    families.push_back(std::move(family));
  }
  return prometheus::TextSerializer().Serialize(families);
}

}  // namespace spel::server
