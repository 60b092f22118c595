#include "proto/status.h"

#include <cmath>

#include "proto/error_body.h"
#include "proto/json_text.h"

namespace spel::proto {

namespace {

/// A ratio nobody has measured yet is null, not 0.
JsonValue measured(double value) {
  return std::isfinite(value) && value > 0.0 ? JsonValue(value) : JsonValue(nullptr);
}

JsonValue requests_json(const StatsSnapshot::Requests& requests) {
  return {{"submitted", requests.submitted},
          {"rejected", requests.rejected},
          {"finished",
           {{"stop", requests.stop},
            {"length", requests.length},
            {"cancelled", requests.cancelled},
            {"deadline", requests.deadline},
            {"error", requests.error}}},
          {"running", requests.running},
          {"waiting", requests.waiting},
          {"sequences", requests.sequences},
          {"queue", requests.queue}};
}

JsonValue speculation_stats_json(const StatsSnapshot::Speculation& speculation) {
  return {{"k", speculation.k},
          {"k_max", speculation.k_max},
          {"governor", name_of(speculation.governor)},
          {"rounds", speculation.rounds},
          {"plain_rounds", speculation.plain_rounds},
          {"proposed", speculation.proposed},
          {"accepted", speculation.accepted},
          {"discarded", speculation.discarded},
          {"accepted_by_position", speculation.accepted_by_position},
          {"trips", speculation.trips},
          {"resumes", speculation.resumes},
          {"acceptance_ratio", speculation.acceptance_ratio},
          {"c", measured(speculation.c)},
          {"v", measured(speculation.v)},
          {"v_tokens", speculation.v_tokens},
          {"tokens_per_second", speculation.tokens_per_second},
          {"ar_seconds_per_token", measured(speculation.ar_seconds_per_token)}};
}

}  // namespace

std::string health_body() { return R"({"status":"ok"})"; }

std::string health_unavailable_body(std::string_view state) {
  ApiError error = unavailable("The server is " + std::string(state) + ".");
  error.code = state;
  return error_body(error);
}

std::string stats_response(const StatsSnapshot& stats) {
  return dump_json(JsonValue{{"state", stats.state},
                             {"version", stats.version},
                             {"uptime_seconds", stats.uptime_seconds},
                             {"model",
                              {{"id", stats.model.id},
                               {"max_seq", stats.model.max_seq},
                               {"vocab_size", stats.model.vocab_size},
                               {"parameters", stats.model.parameters},
                               {"draft_parameters", stats.model.draft_parameters},
                               {"weights_dtype", stats.model.weights_dtype},
                               {"has_draft", stats.model.has_draft}}},
                             {"compute",
                              {{"isa", stats.compute.isa},
                               {"kernel", stats.compute.kernel},
                               {"numerics", stats.compute.numerics},
                               {"target_threads", stats.compute.target_threads},
                               {"draft_threads", stats.compute.draft_threads}}},
                             {"requests", requests_json(stats.requests)},
                             {"tokens",
                              {{"prompt", stats.tokens.prompt},
                               {"cached", stats.tokens.cached},
                               {"generated", stats.tokens.generated}}},
                             {"speculation", speculation_stats_json(stats.speculation)},
                             {"seconds",
                              {{"prefill", stats.seconds.prefill},
                               {"draft", stats.seconds.draft},
                               {"verify", stats.seconds.verify},
                               {"plain", stats.seconds.plain}}},
                             {"memory",
                              {{"resident_bytes", stats.memory.resident_bytes},
                               {"weight_bytes", stats.memory.weight_bytes},
                               {"state_bytes", stats.memory.state_bytes},
                               {"prefix_entries", stats.memory.prefix_entries}}},
                             {"http",
                              {{"connections", stats.http.connections},
                               {"requests", stats.http.requests},
                               {"unknown_fields", stats.http.unknown_fields}}}});
}

}  // namespace spel::proto
