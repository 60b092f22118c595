#include "proto/receipt.h"

#include <algorithm>
#include <cmath>
#include <string_view>
#include <utility>

namespace spel::proto {

namespace {

constexpr double kMsPerSecond = 1000.0;

/// A ratio nobody has measured yet is null, not 0.
JsonValue measured(double value) {
  return std::isfinite(value) && value > 0.0 ? JsonValue(value) : JsonValue(nullptr);
}

double quotient(double numerator, double denominator) {
  const double value = denominator > 0.0 ? numerator / denominator : 0.0;
  return std::isfinite(value) ? value : 0.0;
}

double mean(double a, std::size_t a_weight, double b, std::size_t b_weight) {
  if (a <= 0.0 || a_weight == 0) {
    return b;
  }
  if (b <= 0.0 || b_weight == 0) {
    return a;
  }
  const auto weight_a = static_cast<double>(a_weight);
  const auto weight_b = static_cast<double>(b_weight);
  return (a * weight_a + b * weight_b) / (weight_a + weight_b);
}

}  // namespace

void add(Receipt& total, const Receipt& part, bool new_prompt) {
  const std::size_t total_rounds = total.rounds + total.ar_rounds;
  const std::size_t part_rounds = part.rounds + part.ar_rounds;
  total.c = mean(total.c, total_rounds, part.c, part_rounds);
  total.v = mean(total.v, total_rounds, part.v, part_rounds);
  total.speedup = mean(total.speedup, total_rounds, part.speedup, part_rounds);

  if (new_prompt) {
    total.prompt_tokens += part.prompt_tokens;
    total.cached_tokens += part.cached_tokens;
  }
  total.completion_tokens += part.completion_tokens;
  total.prompt_seconds = std::max(total.prompt_seconds, part.prompt_seconds);
  total.decode_seconds = std::max(total.decode_seconds, part.decode_seconds);
  total.tokens_per_second += part.tokens_per_second;

  if (total.draft_reason.empty() && !total.draft_enabled) {
    total.draft_reason = part.draft_reason;
  }
  total.draft_enabled = total.draft_enabled || part.draft_enabled;
  if (total.draft_enabled) {
    total.draft_reason.clear();
  }
  total.k = std::max(total.k, part.k);
  total.governor = part.governor;  // The same for all sequences of a request.
  total.rounds += part.rounds;
  total.ar_rounds += part.ar_rounds;
  total.proposed += part.proposed;
  total.accepted += part.accepted;
  total.discarded += part.discarded;
  if (total.accepted_by_position.size() < part.accepted_by_position.size()) {
    total.accepted_by_position.resize(part.accepted_by_position.size());
  }
  for (std::size_t i = 0; i < part.accepted_by_position.size(); ++i) {
    total.accepted_by_position[i] += part.accepted_by_position[i];
  }
  total.trips += part.trips;
  total.resumes += part.resumes;
}

JsonValue usage_json(const Receipt& receipt) {
  JsonValue prompt_details = {{"cached_tokens", receipt.cached_tokens}};
  if (receipt.normalized_characters > 0) {
    prompt_details["normalized_characters"] = receipt.normalized_characters;
  }
  return {{"prompt_tokens", receipt.prompt_tokens},
          {"completion_tokens", receipt.completion_tokens},
          {"total_tokens", receipt.prompt_tokens + receipt.completion_tokens},
          {"prompt_tokens_details", std::move(prompt_details)},
          {"completion_tokens_details",
           {{"accepted_prediction_tokens", receipt.accepted},
            {"rejected_prediction_tokens",
             receipt.proposed - std::min(receipt.accepted, receipt.proposed)}}}};
}

JsonValue timings_json(const Receipt& receipt) {
  const std::size_t prompt_n =
      receipt.prompt_tokens - std::min(receipt.cached_tokens, receipt.prompt_tokens);
  const double prompt_ms = receipt.prompt_seconds * kMsPerSecond;
  const double rate = std::isfinite(receipt.tokens_per_second) ? receipt.tokens_per_second : 0.0;
  JsonValue timings = {
      {"cache_n", receipt.cached_tokens},
      {"prompt_n", prompt_n},
      {"prompt_ms", prompt_ms},
      {"prompt_per_token_ms", quotient(prompt_ms, static_cast<double>(prompt_n))},
      {"prompt_per_second", quotient(static_cast<double>(prompt_n), receipt.prompt_seconds)},
      {"predicted_n", receipt.completion_tokens},
      {"predicted_ms", receipt.decode_seconds * kMsPerSecond},
      {"predicted_per_token_ms", quotient(kMsPerSecond, rate)},
      {"predicted_per_second", rate}};
  if (receipt.draft_enabled) {
    timings["draft_n"] = receipt.proposed;
    timings["draft_n_accepted"] = receipt.accepted;
  }
  return timings;
}

JsonValue speculation_json(const Receipt& receipt) {
  const double alpha =
      quotient(static_cast<double>(receipt.accepted), static_cast<double>(receipt.proposed));
  return {{"draft_enabled", receipt.draft_enabled},
          {"draft_reason",
           receipt.draft_reason.empty() ? JsonValue(nullptr) : JsonValue(receipt.draft_reason)},
          {"k", receipt.k},
          {"governor", name_of(receipt.governor)},
          {"rounds", receipt.rounds},
          {"ar_rounds", receipt.ar_rounds},
          {"proposed", receipt.proposed},
          {"accepted", receipt.accepted},
          {"discarded", receipt.discarded},
          {"alpha", alpha},
          {"accepted_by_position", receipt.accepted_by_position},
          {"trips", receipt.trips},
          {"resumes", receipt.resumes},
          {"c", measured(receipt.c)},
          {"v", measured(receipt.v)},
          {"tokens_per_second", measured(receipt.tokens_per_second)},
          {"speedup", measured(receipt.speedup)}};
}

JsonValue replays_json(const Receipt& receipt) {
  JsonValue list = JsonValue::array();
  for (const ReplayReport& replay : receipt.replays) {
    JsonValue notes = JsonValue::array();
    for (const ReplayReport::Used& note : replay.notes) {
      notes.push_back({{"id", note.id}, {"start", note.start}, {"score", note.score}});
    }
    list.push_back({{"bank", replay.bank},
                    {"notes", std::move(notes)},
                    {"tokens", replay.tokens},
                    {"seconds", replay.seconds}});
  }
  return list;
}

}  // namespace spel::proto
