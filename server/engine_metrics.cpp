#include "server/engine_metrics.h"

#include <cmath>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>

#include "server/constants.h"
#include "server/metrics.h"
#include "server/process_stats.h"

namespace spel::server {
namespace {

using prometheus::ClientMetric;
using prometheus::MetricFamily;
using prometheus::MetricType;

class Page {
 public:
  struct Sample {
    std::string label;
    double value;
  };

  template <typename T>
  void counter(std::string name, std::string help, T value) {
    add(MetricType::Counter, std::move(name), std::move(help), {},
        {{{}, static_cast<double>(value)}});
  }
  template <typename T>
  void gauge(std::string name, std::string help, T value) {
    add(MetricType::Gauge, std::move(name), std::move(help), {},
        {{{}, static_cast<double>(value)}});
  }

  void add(MetricType type, std::string name, std::string help, std::string_view label,
           const std::vector<Sample>& samples) {
    MetricFamily family{std::move(name), std::move(help), type, {}};
    for (const Sample& sample : samples) {
      ClientMetric metric;
      if (!label.empty()) {
        metric.label.push_back({std::string(label), sample.label});
      }
      const double value = std::isfinite(sample.value) ? sample.value : 0.0;
      if (type == MetricType::Counter) {
        metric.counter.value = value;
      } else {
        metric.gauge.value = value;
      }
      family.metric.push_back(std::move(metric));
    }
    families_.push_back(std::move(family));
  }

  void info(std::string name, std::string help,
            const std::vector<std::pair<std::string, std::string>>& labels) {
    MetricFamily family{std::move(name), std::move(help), MetricType::Gauge, {}};
    ClientMetric metric;
    for (const auto& [key, value] : labels) {
      metric.label.push_back({key, value});
    }
    metric.gauge.value = 1.0;
    family.metric.push_back(std::move(metric));
    families_.push_back(std::move(family));
  }

  [[nodiscard]] std::vector<MetricFamily> take() { return std::move(families_); }

 private:
  std::vector<MetricFamily> families_;
};

double finished(const engine::EngineStats& stats, engine::FinishReason reason) {
  return static_cast<double>(stats.requests_finished[static_cast<std::size_t>(reason)]);
}

void add_requests(Page& page, const engine::EngineStats& stats) {
  using engine::FinishReason;
  page.counter("spel_requests_started_total", "Generations taken into the queue.",
               stats.requests_submitted);
  page.add(
      MetricType::Counter, "spel_requests_finished_total", "Generations that have ended, by how.",
      "result",
      {{"ok", finished(stats, FinishReason::kStop) + finished(stats, FinishReason::kLength)},
       {"error", finished(stats, FinishReason::kError) + finished(stats, FinishReason::kDeadline)},
       {"cancelled", finished(stats, FinishReason::kCancelled)}});
  page.add(MetricType::Counter, "spel_request_success_total",
           "Generations that ended well, by reason.", "finished_reason",
           {{"stop", finished(stats, FinishReason::kStop)},
            {"length", finished(stats, FinishReason::kLength)}});
  page.counter("spel_requests_rejected_total",
               "Generations refused because the queue was full or the server draining.",
               stats.requests_rejected);
  page.gauge("spel_num_requests_running", "Generations running now.", stats.running);
  page.gauge("spel_num_requests_waiting", "Generations waiting now.", stats.waiting);
  page.counter("spel_prompt_tokens_total", "Prompt tokens prefilled.", stats.prompt_tokens);
  page.counter("spel_prompt_tokens_cached_total", "Prompt tokens whose state was reused.",
               stats.cached_tokens);
  page.counter("spel_generation_tokens_total",
               "Tokens generated, those of cancelled requests included.", stats.generation_tokens);
}

void add_speculation(Page& page, const engine::EngineStats& stats) {
  page.counter("spel_spec_decode_num_drafts_total", "Rounds with proposals.", stats.drafts);
  page.counter("spel_spec_decode_num_draft_tokens_total", "Tokens proposed by the draft.",
               stats.draft_tokens);
  page.counter("spel_spec_decode_num_accepted_tokens_total", "Proposed tokens that became output.",
               stats.accepted_tokens);
  page.counter("spel_spec_decode_num_discarded_tokens_total",
               "Proposed tokens never judged: the answer ended before their place.",
               stats.discarded_tokens);
  std::vector<Page::Sample> positions;
  positions.reserve(stats.accepted_by_position.size());
  for (std::size_t i = 0; i < stats.accepted_by_position.size(); ++i) {
    positions.push_back({std::to_string(i), static_cast<double>(stats.accepted_by_position[i])});
  }
  page.add(MetricType::Counter, "spel_spec_decode_num_accepted_tokens_per_pos_total",
           "Proposed tokens that became output, by their place in the round.", "position",
           positions);
  page.add(MetricType::Counter, "spel_rounds_total",
           "Rounds of decoding, one for each sequence in a pass, by mode.", "mode",
           {{"speculative", static_cast<double>(stats.drafts)},
            {"plain", static_cast<double>(stats.plain_rounds)}});
  page.counter("spel_governor_trips_total", "Times a governor turned drafting off.", stats.trips);
  page.counter("spel_governor_resumes_total", "Times a governor turned drafting on again.",
               stats.resumes);
  page.counter("spel_engine_steps_total", "Steps of the scheduler.", stats.steps);
  page.counter("spel_prefill_seconds_total", "Time in prefill passes.", stats.prefill_seconds);
  page.counter("spel_draft_seconds_total", "Time in draft passes.", stats.draft_seconds);
  page.counter("spel_verify_seconds_total", "Time in verification passes.", stats.verify_seconds);
  page.counter("spel_plain_seconds_total", "Time in plain decoding passes.", stats.plain_seconds);
  page.gauge("spel_acceptance_ratio", "Accepted over proposed tokens, last completed rounds.",
             stats.acceptance);
  page.gauge("spel_draft_cost_ratio", "c: one draft forward over one plain token, now.", stats.c);
  page.gauge("spel_verify_cost_ratio", "v: one verification over one plain token, now.", stats.v);
  page.gauge("spel_tokens_per_second", "Tokens generated a second, last seconds of decoding.",
             stats.tokens_per_second);
  page.gauge("spel_plain_token_seconds", "One plainly decoded token, now: the unit of c and v.",
             stats.ar_seconds_per_token);
  page.counter("spel_capture_tokens_total", "Tokens read for NoteBank, outside the batch.",
               stats.capture_tokens);
  page.counter("spel_capture_seconds_total", "Time in passes for NoteBank.", stats.capture_seconds);
  page.gauge("spel_state_bytes", "Sequence states and prefix cache.", stats.state_bytes);
  page.gauge("spel_prefix_cache_entries", "Prompt states kept for reuse.", stats.prefix_entries);
}

void add_notes(Page& page, const Backend* backend) {
  static const NoteCounters kNone;
  NoteService* notes = backend != nullptr ? backend->notes.get() : nullptr;
  const NoteCounters& counters = notes != nullptr ? notes->counters() : kNone;
  page.counter("spel_notebank_writes_total", "Texts written into banks.", counters.writes.load());
  page.counter("spel_notebank_addresses_total", "Queries addressed to banks.",
               counters.addresses.load());
  page.counter("spel_notebank_replays_total", "Prompts that notes were read before.",
               counters.replays.load());
  page.counter("spel_notebank_notes_written_total", "Notes made durable.",
               counters.notes_written.load());
  page.counter("spel_notebank_write_seconds_total", "Writing texts, capture included.",
               counters.write_seconds.load());
  page.counter("spel_notebank_address_seconds_total", "Addressing, capture included.",
               counters.address_seconds.load());
  page.gauge("spel_notebank_notes", "Notes of the resident model, in all banks.",
             notes != nullptr ? notes->bank().notes() : 0);
  page.gauge("spel_notebank_damaged_notes", "Of those on disk, damaged ones that are left out.",
             notes != nullptr ? notes->bank().damaged() : 0);
}

void add_process(Page& page) {
  const ProcessStats stats = read_process_stats();
  page.counter("process_cpu_seconds_total", "User and system CPU time.", stats.cpu_seconds);
  page.gauge("process_resident_memory_bytes", "Resident memory.", stats.resident_bytes);
  page.gauge("process_virtual_memory_bytes", "Virtual memory.", stats.virtual_bytes);
  page.gauge("process_start_time_seconds", "Start, in Unix time.", stats.start_seconds);
  page.gauge("process_open_fds", "Open file descriptors.", stats.open_fds);
  page.gauge("process_max_fds", "Limit of open file descriptors.", stats.max_fds);
  page.gauge("process_threads", "Threads.", stats.threads);
}

}  // namespace

std::vector<MetricFamily> EngineMetrics::Collect() const {
  Page page;
  const Backend* backend = lifecycle_.backend();
  const Phase phase = lifecycle_.phase();
  std::vector<Page::Sample> phases;
  for (const Phase each : {Phase::kLoading, Phase::kReady, Phase::kDraining}) {
    phases.push_back(
        {std::string(phase_name(each)), phase_name(each) == phase_name(phase) ? 1.0 : 0.0});
  }
  page.add(MetricType::Gauge, "spel_server_state", "1 for the state the server is in.", "state",
           phases);
  page.info("spel_build_info", "What this server is; always 1.",
            {{"version", std::string(kVersion)},
             {"model", backend != nullptr ? backend->model_id : ""},
             {"isa", backend != nullptr ? backend->isa : ""}});
  // The same series before the model is there as after: zero.
  const engine::EngineStats stats =
      backend != nullptr ? backend->engine->stats() : engine::EngineStats{};
  add_requests(page, stats);
  add_speculation(page, stats);
  add_notes(page, backend);
  add_process(page);
  return page.take();
}

}  // namespace spel::server
