#include "server/figures.h"

#include <array>
#include <cmath>
#include <prometheus/metric_family.h>
#include <prometheus/text_serializer.h>
#include <string_view>
#include <utility>
#include <vector>

#include "config/json/value.h"
#include "proto/receipt.h"
#include "server/constants.h"
#include "server/note_service.h"

namespace spel::server {
namespace {

using engine::EngineStats;
using prometheus::ClientMetric;
using prometheus::MetricFamily;
using prometheus::MetricType;

struct Figure {
  std::string_view json;  ///< Its place in /v1/stats, "requests.running"; empty: not there.
  JsonValue (*of)(const Snapshot&);
  std::string_view metric = {};  ///< Its name on /metrics; empty: not there.
  MetricType type = MetricType::Gauge;
  std::string_view help = {};
  /// Of a figure with several values: their names in an object and their places in an array are
  /// this label's values.
  std::string_view label = {};
};

// --- Where figures come from ---------------------------------------------------------------------

template <auto Member>
JsonValue engine_value(const Snapshot& snapshot) {
  return snapshot.engine.*Member;
}

template <auto Member>
JsonValue measured_value(const Snapshot& snapshot) {
  return proto::measured(snapshot.engine.*Member);
}

template <auto Member>
JsonValue backend_value(const Snapshot& snapshot) {
  return snapshot.backend->*Member;
}

template <auto Member>
JsonValue engine_setting(const Snapshot& snapshot) {
  return snapshot.backend->engine->config().*Member;
}

template <auto Member>
JsonValue process_value(const Snapshot& snapshot) {
  return snapshot.process.*Member;
}

template <auto Member>
JsonValue snapshot_value(const Snapshot& snapshot) {
  return snapshot.*Member;
}

template <auto Member>
JsonValue own_counter(const Snapshot& snapshot) {
  return (snapshot.own.counters().*Member).load();
}

template <auto Member>
JsonValue note_counter(const Snapshot& snapshot) {
  const NoteService* notes = snapshot.backend != nullptr ? snapshot.backend->notes.get() : nullptr;
  return notes != nullptr ? JsonValue((notes->counters().*Member).load()) : JsonValue(0);
}

template <auto Count>
JsonValue bank_value(const Snapshot& snapshot) {
  NoteService* notes = snapshot.backend != nullptr ? snapshot.backend->notes.get() : nullptr;
  return notes != nullptr ? JsonValue((notes->bank().*Count)()) : JsonValue(0);
}

std::uint64_t finished(const Snapshot& snapshot, FinishReason reason) {
  return snapshot.engine.requests_finished[static_cast<std::size_t>(reason)];
}

JsonValue finished_by_reason(const Snapshot& snapshot) {
  JsonValue counts = JsonValue::object();
  for (const auto& [reason, name] : kNames<FinishReason>) {
    counts.add_member(std::string(name), finished(snapshot, reason));
  }
  return counts;
}

JsonValue finished_well(const Snapshot& snapshot) {
  JsonValue counts = JsonValue::object();
  for (const auto& [reason, name] : kNames<FinishReason>) {
    if (result_of(reason) == Result::kOk) {
      counts.add_member(std::string(name), finished(snapshot, reason));
    }
  }
  return counts;
}

JsonValue finished_by_result(const Snapshot& snapshot) {
  JsonValue counts = JsonValue::object();
  for (const auto& [result, name] : kNames<Result>) {
    std::uint64_t count = 0;
    for (const auto& [reason, reason_name] : kNames<FinishReason>) {
      count += result_of(reason) == result ? finished(snapshot, reason) : 0;
    }
    counts.add_member(std::string(name), count);
  }
  return counts;
}

JsonValue generated_by_result(const Snapshot& snapshot) {
  JsonValue counts = JsonValue::object();
  for (const auto& [result, name] : kNames<Result>) {
    counts.add_member(std::string(name),
                      snapshot.own.counters().generated[static_cast<std::size_t>(result)].load());
  }
  return counts;
}

JsonValue phases(const Snapshot& snapshot) {
  JsonValue states = JsonValue::object();
  for (const Phase phase : {Phase::kLoading, Phase::kReady, Phase::kDraining}) {
    states.add_member(std::string(phase_name(phase)),
                      phase_name(phase) == phase_name(snapshot.phase) ? 1 : 0);
  }
  return states;
}

JsonValue accepted_by_position(const Snapshot& snapshot) {
  const auto& counts = snapshot.engine.accepted_by_position;
  return std::vector<std::uint64_t>(counts.begin(), counts.end());
}

JsonValue rounds_by_mode(const Snapshot& snapshot) {
  return {{"speculative", snapshot.engine.drafts}, {"plain", snapshot.engine.plain_rounds}};
}

// --- The table -----------------------------------------------------------------------------------

constexpr MetricType kCounter = MetricType::Counter;
constexpr MetricType kGauge = MetricType::Gauge;

/// In the order of /v1/stats, what is only on /metrics where it belongs.
constexpr std::array kFigures{
    Figure{"state", [](const Snapshot& s) { return JsonValue(phase_name(s.phase)); }},
    Figure{"", &phases, "spel_server_state", kGauge, "1 for the state the server is in.", "state"},
    Figure{"version", [](const Snapshot&) { return JsonValue(kVersion); }},
    Figure{"uptime_seconds", &snapshot_value<&Snapshot::uptime_seconds>},

    Figure{"model.id", &backend_value<&Backend::model_id>},
    Figure{"model.max_seq",
           [](const Snapshot& s) { return JsonValue(s.backend->engine->max_seq()); }},
    Figure{"model.vocab_size",
           [](const Snapshot& s) { return JsonValue(s.backend->engine->vocab_size()); }},
    Figure{"model.parameters", &backend_value<&Backend::parameters>},
    Figure{"model.draft_parameters", &backend_value<&Backend::draft_parameters>},
    Figure{"model.weights_dtype", &backend_value<&Backend::weights_dtype>},
    Figure{"model.has_draft",
           [](const Snapshot& s) { return JsonValue(s.backend->draft_parameters > 0); }},

    Figure{"compute.isa", &backend_value<&Backend::isa>},
    Figure{"compute.kernel", &backend_value<&Backend::kernel>},
    Figure{"compute.numerics", &backend_value<&Backend::numerics>},
    Figure{"compute.target_threads", &backend_value<&Backend::target_threads>},
    Figure{"compute.draft_threads", &backend_value<&Backend::draft_threads>},

    Figure{"requests.submitted", &engine_value<&EngineStats::requests_submitted>,
           "spel_requests_started_total", kCounter, "Generations taken into the queue."},
    Figure{"requests.rejected", &engine_value<&EngineStats::requests_rejected>,
           "spel_requests_rejected_total", kCounter,
           "Generations refused because the queue was full or the server draining."},
    Figure{"requests.finished", &finished_by_reason},
    Figure{"", &finished_by_result, "spel_requests_finished_total", kCounter,
           "Generations that have ended, by how.", "result"},
    Figure{"", &finished_well, "spel_request_success_total", kCounter,
           "Generations that ended well, by reason.", "finished_reason"},
    Figure{"requests.running", &engine_value<&EngineStats::running>, "spel_num_requests_running",
           kGauge, "Generations running now."},
    Figure{"requests.waiting", &engine_value<&EngineStats::waiting>, "spel_num_requests_waiting",
           kGauge, "Generations waiting now."},
    Figure{"requests.sequences", &engine_setting<&engine::EngineConfig::sequences>},
    Figure{"requests.queue", &engine_setting<&engine::EngineConfig::queue_capacity>},

    Figure{"tokens.prompt", &engine_value<&EngineStats::prompt_tokens>, "spel_prompt_tokens_total",
           kCounter, "Prompt tokens prefilled."},
    Figure{"tokens.cached", &engine_value<&EngineStats::cached_tokens>,
           "spel_prompt_tokens_cached_total", kCounter, "Prompt tokens whose state was reused."},
    Figure{"tokens.generated", &engine_value<&EngineStats::generation_tokens>,
           "spel_generation_tokens_total", kCounter,
           "Tokens generated, those of cancelled requests included."},
    Figure{"", &generated_by_result, "spel_request_generation_tokens_total", kCounter,
           "Tokens of generations that have ended, by how they ended.", "result"},

    Figure{"speculation.k", &snapshot_value<&Snapshot::k>},
    Figure{"speculation.k_max", &engine_setting<&engine::EngineConfig::k_max>},
    Figure{"speculation.governor",
           [](const Snapshot& s) { return JsonValue(name_of(s.governor)); }},
    Figure{"speculation.rounds", &engine_value<&EngineStats::drafts>,
           "spel_spec_decode_num_drafts_total", kCounter, "Rounds with proposals."},
    Figure{"speculation.plain_rounds", &engine_value<&EngineStats::plain_rounds>},
    Figure{"", &rounds_by_mode, "spel_rounds_total", kCounter,
           "Rounds of decoding, one for each sequence in a pass, by mode.", "mode"},
    Figure{"speculation.proposed", &engine_value<&EngineStats::draft_tokens>,
           "spel_spec_decode_num_draft_tokens_total", kCounter, "Tokens proposed by the draft."},
    Figure{"speculation.accepted", &engine_value<&EngineStats::accepted_tokens>,
           "spel_spec_decode_num_accepted_tokens_total", kCounter,
           "Proposed tokens that became output."},
    Figure{"speculation.discarded", &engine_value<&EngineStats::discarded_tokens>,
           "spel_spec_decode_num_discarded_tokens_total", kCounter,
           "Proposed tokens never judged: the answer ended before their place."},
    Figure{"speculation.accepted_by_position", &accepted_by_position,
           "spel_spec_decode_num_accepted_tokens_per_pos_total", kCounter,
           "Proposed tokens that became output, by their place in the round.", "position"},
    Figure{"speculation.trips", &engine_value<&EngineStats::trips>, "spel_governor_trips_total",
           kCounter, "Times a governor turned drafting off."},
    Figure{"speculation.resumes", &engine_value<&EngineStats::resumes>,
           "spel_governor_resumes_total", kCounter, "Times a governor turned drafting on again."},
    Figure{"speculation.acceptance_ratio", &engine_value<&EngineStats::acceptance>,
           "spel_acceptance_ratio", kGauge,
           "Accepted over proposed tokens, last completed rounds."},
    Figure{"speculation.c", &measured_value<&EngineStats::c>, "spel_draft_cost_ratio", kGauge,
           "c: one draft forward over one plain token, now."},
    Figure{"speculation.v", &measured_value<&EngineStats::v>, "spel_verify_cost_ratio", kGauge,
           "v: one verification over one plain token, now."},
    Figure{"speculation.v_tokens", &engine_value<&EngineStats::v_tokens>},
    Figure{"speculation.tokens_per_second", &engine_value<&EngineStats::tokens_per_second>,
           "spel_tokens_per_second", kGauge,
           "Tokens generated a second, last seconds of decoding."},
    Figure{"", &own_counter<&OwnCounters::speculated_seconds>, "spel_speculated_seconds_total",
           kCounter, "Decoding of ended generations with proposals whose speedup is known."},
    Figure{"", &own_counter<&OwnCounters::speculated_plain_seconds>,
           "spel_speculated_plain_seconds_total", kCounter,
           "What their decoding would have taken without proposals."},
    Figure{"speculation.ar_seconds_per_token", &measured_value<&EngineStats::ar_seconds_per_token>,
           "spel_plain_token_seconds", kGauge,
           "One plainly decoded token, now: the unit of c and v."},
    Figure{"", &engine_value<&EngineStats::steps>, "spel_engine_steps_total", kCounter,
           "Steps of the scheduler."},

    Figure{"seconds.prefill", &engine_value<&EngineStats::prefill_seconds>,
           "spel_prefill_seconds_total", kCounter, "Time in prefill passes."},
    Figure{"seconds.draft", &engine_value<&EngineStats::draft_seconds>, "spel_draft_seconds_total",
           kCounter, "Time in draft passes."},
    Figure{"seconds.verify", &engine_value<&EngineStats::verify_seconds>,
           "spel_verify_seconds_total", kCounter, "Time in verification passes."},
    Figure{"seconds.plain", &engine_value<&EngineStats::plain_seconds>, "spel_plain_seconds_total",
           kCounter, "Time in plain decoding passes."},
    Figure{"", &engine_value<&EngineStats::capture_tokens>, "spel_capture_tokens_total", kCounter,
           "Tokens read for NoteBank, outside the batch."},
    Figure{"", &engine_value<&EngineStats::capture_seconds>, "spel_capture_seconds_total", kCounter,
           "Time in passes for NoteBank."},

    Figure{"memory.resident_bytes", &process_value<&ProcessStats::resident_bytes>,
           "process_resident_memory_bytes", kGauge, "Resident memory."},
    Figure{"memory.weight_bytes", &backend_value<&Backend::weight_bytes>},
    Figure{"memory.state_bytes", &engine_value<&EngineStats::state_bytes>, "spel_state_bytes",
           kGauge, "Sequence states and prefix cache."},
    Figure{"memory.prefix_entries", &engine_value<&EngineStats::prefix_entries>,
           "spel_prefix_cache_entries", kGauge, "Prompt states kept for reuse."},

    Figure{"http.connections", &own_counter<&OwnCounters::connections>, "spel_http_connections",
           kGauge, "Client connections open now."},
    Figure{"", &own_counter<&OwnCounters::connections_refused>,
           "spel_http_connections_refused_total", kCounter,
           "Connections turned away because too many were open."},
    Figure{"http.requests", [](const Snapshot& s) { return JsonValue(s.own.requests()); }},
    Figure{"http.unknown_fields", &own_counter<&OwnCounters::unknown_fields>,
           "spel_unknown_fields_total", kCounter,
           "Members of request bodies that are not known and were ignored."},

    Figure{"", &note_counter<&NoteCounters::writes>, "spel_notebank_writes_total", kCounter,
           "Texts written into banks."},
    Figure{"", &note_counter<&NoteCounters::addresses>, "spel_notebank_addresses_total", kCounter,
           "Queries addressed to banks."},
    Figure{"", &note_counter<&NoteCounters::replays>, "spel_notebank_replays_total", kCounter,
           "Prompts that notes were read before."},
    Figure{"", &note_counter<&NoteCounters::notes_written>, "spel_notebank_notes_written_total",
           kCounter, "Notes made durable."},
    Figure{"", &note_counter<&NoteCounters::write_seconds>, "spel_notebank_write_seconds_total",
           kCounter, "Writing texts, capture included."},
    Figure{"", &note_counter<&NoteCounters::address_seconds>, "spel_notebank_address_seconds_total",
           kCounter, "Addressing, capture included."},
    Figure{"", &bank_value<&memory::NoteBank::notes>, "spel_notebank_notes", kGauge,
           "Notes of the resident model, in all banks."},
    Figure{"", &bank_value<&memory::NoteBank::damaged>, "spel_notebank_damaged_notes", kGauge,
           "Of those on disk, damaged ones that are left out."},

    Figure{"", &process_value<&ProcessStats::cpu_seconds>, "process_cpu_seconds_total", kCounter,
           "User and system CPU time."},
    Figure{"", &process_value<&ProcessStats::virtual_bytes>, "process_virtual_memory_bytes", kGauge,
           "Virtual memory."},
    Figure{"", &process_value<&ProcessStats::start_seconds>, "process_start_time_seconds", kGauge,
           "Start, in Unix time."},
    Figure{"", &process_value<&ProcessStats::open_fds>, "process_open_fds", kGauge,
           "Open file descriptors."},
    Figure{"", &process_value<&ProcessStats::max_fds>, "process_max_fds", kGauge,
           "Limit of open file descriptors."},
    Figure{"", &process_value<&ProcessStats::threads>, "process_threads", kGauge, "Threads."},
};

// --- What is made of it --------------------------------------------------------------------------

void add_sample(MetricFamily& family, std::string_view label, std::string label_value,
                const JsonValue& value) {
  ClientMetric metric;
  if (!label.empty()) {
    metric.label.push_back({std::string(label), std::move(label_value)});
  }
  const double number = value.is_number() ? value.get<double>() : 0.0;
  (family.type == MetricType::Counter ? metric.counter.value : metric.gauge.value) =
      std::isfinite(number) ? number : 0.0;
  family.metric.push_back(std::move(metric));
}

MetricFamily family_of(const Figure& figure, const JsonValue& value) {
  MetricFamily family{std::string(figure.metric), std::string(figure.help), figure.type, {}};
  if (figure.label.empty()) {
    add_sample(family, {}, {}, value);
  }
  for (const JsonValue::Member& member : value.items()) {
    add_sample(family, figure.label, member.key, member.value);
  }
  for (const JsonValue& element : value.elements()) {
    add_sample(family, figure.label, std::to_string(family.metric.size()), element);
  }
  return family;
}

/// The one metric that is text.
MetricFamily build_info(const Backend* backend) {
  MetricFamily family{"spel_build_info", "What this server is; always 1.", MetricType::Gauge, {}};
  ClientMetric metric;
  metric.label = {{"version", std::string(kVersion)},
                  {"model", backend != nullptr ? backend->model_id : ""},
                  {"isa", backend != nullptr ? backend->isa : ""}};
  metric.gauge.value = 1.0;
  family.metric.push_back(std::move(metric));
  return family;
}

}  // namespace

Snapshot take_snapshot(const Lifecycle& lifecycle, const Metrics& metrics) {
  Snapshot snapshot{.phase = lifecycle.phase(),
                    .backend = lifecycle.backend(),
                    .engine = {},
                    .process = read_process_stats(),
                    .own = metrics};
  if (snapshot.backend != nullptr) {
    snapshot.engine = snapshot.backend->engine->stats();
  }
  return snapshot;
}

std::string stats_body(const Snapshot& snapshot) {
  JsonValue body = JsonValue::object();
  for (const Figure& figure : kFigures) {
    if (figure.json.empty()) {
      continue;
    }
    const std::size_t dot = figure.json.find('.');
    JsonValue& place = dot == std::string_view::npos
                           ? body[figure.json]
                           : body[figure.json.substr(0, dot)][figure.json.substr(dot + 1)];
    place = figure.of(snapshot);
  }
  return dump_json(body);
}

std::string metrics_page(const Snapshot& snapshot) {
  std::vector<MetricFamily> families = snapshot.own.collect();
  families.push_back(build_info(snapshot.backend));
  for (const Figure& figure : kFigures) {
    if (!figure.metric.empty()) {
      families.push_back(family_of(figure, figure.of(snapshot)));
    }
  }
  return prometheus::TextSerializer().Serialize(families);
}

}  // namespace spel::server
