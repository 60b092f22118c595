#include "proto/status.h"
#include "server/constants.h"
#include "server/handlers/handlers.h"
#include "server/process_stats.h"
#include "server/translate.h"

namespace spel::server {
namespace {

void fill_engine(const engine::EngineStats& stats, proto::StatsSnapshot& out) {
  using engine::FinishReason;
  const auto finished = [&](FinishReason reason) {
    return stats.requests_finished[static_cast<std::size_t>(reason)];
  };
  out.requests.submitted = stats.requests_submitted;
  out.requests.rejected = stats.requests_rejected;
  out.requests.stop = finished(FinishReason::kStop);
  out.requests.length = finished(FinishReason::kLength);
  out.requests.cancelled = finished(FinishReason::kCancelled);
  out.requests.deadline = finished(FinishReason::kDeadline);
  out.requests.error = finished(FinishReason::kError);
  out.requests.running = stats.running;
  out.requests.waiting = stats.waiting;
  out.tokens.prompt = stats.prompt_tokens;
  out.tokens.cached = stats.cached_tokens;
  out.tokens.generated = stats.generation_tokens;
  out.speculation.rounds = stats.drafts;
  out.speculation.plain_rounds = stats.plain_rounds;
  out.speculation.proposed = stats.draft_tokens;
  out.speculation.accepted = stats.accepted_tokens;
  out.speculation.discarded = stats.discarded_tokens;
  out.speculation.accepted_by_position.assign(stats.accepted_by_position.begin(),
                                              stats.accepted_by_position.end());
  out.speculation.trips = stats.trips;
  out.speculation.resumes = stats.resumes;
  out.speculation.acceptance_ratio = stats.acceptance;
  out.speculation.c = stats.c;
  out.speculation.v = stats.v;
  out.speculation.v_tokens = stats.v_tokens;
  out.speculation.tokens_per_second = stats.tokens_per_second;
  out.speculation.ar_seconds_per_token = stats.ar_seconds_per_token;
  out.seconds.prefill = stats.prefill_seconds;
  out.seconds.draft = stats.draft_seconds;
  out.seconds.verify = stats.verify_seconds;
  out.seconds.plain = stats.plain_seconds;
  out.memory.state_bytes = stats.state_bytes;
  out.memory.prefix_entries = stats.prefix_entries;
}

void fill_backend(const Backend& backend, proto::StatsSnapshot& out) {
  out.model.id = backend.model_id;
  out.model.max_seq = backend.engine->max_seq();
  out.model.vocab_size = backend.engine->vocab_size();
  out.model.parameters = backend.parameters;
  out.model.draft_parameters = backend.draft_parameters;
  out.model.weights_dtype = backend.weights_dtype;
  out.model.has_draft = backend.draft_parameters > 0;
  out.compute.isa = backend.isa;
  out.compute.kernel = backend.kernel;
  out.compute.numerics = backend.numerics;
  out.compute.target_threads = backend.target_threads;
  out.compute.draft_threads = backend.draft_threads;
  out.requests.sequences = backend.engine->config().sequences;
  out.requests.queue = backend.engine->config().queue_capacity;
  out.speculation.k_max = backend.engine->config().k_max;
  out.memory.weight_bytes = backend.weight_bytes;
  fill_engine(backend.engine->stats(), out);
}

}  // namespace

void add_stats_route(Router& router, const HandlerContext& context) {
  const auto started = Clock::now();
  router.add(Verb::get, "/v1/stats", {}, SyncHandler([context, started](const Request&) {
               proto::StatsSnapshot stats;
               stats.state = phase_name(context.lifecycle.phase());
               stats.version = kVersion;
               stats.uptime_seconds = std::chrono::duration<double>(Clock::now() - started).count();
               stats.speculation.k = context.config.spec_k;
               stats.speculation.governor = governor_of(context.config);
               fill_backend(*context.lifecycle.backend(), stats);
               stats.memory.resident_bytes = read_process_stats().resident_bytes;
               stats.http.connections = context.metrics.connections();
               stats.http.requests = context.metrics.requests();
               stats.http.unknown_fields = context.metrics.unknown_fields();
               return json_response(proto::stats_response(stats));
             }));
}

}  // namespace spel::server
