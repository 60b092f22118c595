#include "proto/receipt.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <string_view>
#include <utility>

namespace spel::proto {

namespace {

constexpr double kMsPerSecond = 1000.0;

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

/// Rounds of the sequences joined so far, and of the one that comes to them.
struct Weights {
  std::size_t total = 0;
  std::size_t part = 0;
};

/// A member of "speculation", and how it comes of several sequences' (null: it follows from
/// others).
struct Field {
  std::string_view key;
  JsonValue (*of)(const Receipt&);
  void (*join)(Receipt& total, const Receipt& part, const Weights&);
};

template <auto Member>
JsonValue value(const Receipt& receipt) {
  return receipt.*Member;
}

template <auto Member>
JsonValue measured_value(const Receipt& receipt) {
  return measured(receipt.*Member);
}

template <auto Member>
void sum(Receipt& total, const Receipt& part, const Weights&) {
  total.*Member += part.*Member;
}

template <auto Member>
void weighted(Receipt& total, const Receipt& part, const Weights& weights) {
  total.*Member = mean(total.*Member, weights.total, part.*Member, weights.part);
}

JsonValue reason_json(const Receipt& receipt) {
  return receipt.draft_reason.empty() ? JsonValue(nullptr) : JsonValue(receipt.draft_reason);
}

void join_drafting(Receipt& total, const Receipt& part, const Weights&) {
  if (total.draft_reason.empty() && !total.draft_enabled) {
    total.draft_reason = part.draft_reason;
  }
  total.draft_enabled = total.draft_enabled || part.draft_enabled;
  if (total.draft_enabled) {
    total.draft_reason.clear();
  }
}

void join_k(Receipt& total, const Receipt& part, const Weights&) {
  total.k = std::max(total.k, part.k);
}

JsonValue governor_json(const Receipt& receipt) { return name_of(receipt.governor); }

/// The same for all sequences of a request.
void join_governor(Receipt& total, const Receipt& part, const Weights&) {
  total.governor = part.governor;
}

JsonValue alpha_json(const Receipt& receipt) {
  return quotient(static_cast<double>(receipt.accepted), static_cast<double>(receipt.proposed));
}

void join_positions(Receipt& total, const Receipt& part, const Weights&) {
  if (total.accepted_by_position.size() < part.accepted_by_position.size()) {
    total.accepted_by_position.resize(part.accepted_by_position.size());
  }
  for (std::size_t i = 0; i < part.accepted_by_position.size(); ++i) {
    total.accepted_by_position[i] += part.accepted_by_position[i];
  }
}

using R = Receipt;
constexpr std::array kSpeculation{
    Field{"draft_enabled", &value<&R::draft_enabled>, &join_drafting},
    Field{"draft_reason", &reason_json, nullptr},
    Field{"k", &value<&R::k>, &join_k},
    Field{"governor", &governor_json, &join_governor},
    Field{"rounds", &value<&R::rounds>, &sum<&R::rounds>},
    Field{"ar_rounds", &value<&R::ar_rounds>, &sum<&R::ar_rounds>},
    Field{"proposed", &value<&R::proposed>, &sum<&R::proposed>},
    Field{"accepted", &value<&R::accepted>, &sum<&R::accepted>},
    Field{"discarded", &value<&R::discarded>, &sum<&R::discarded>},
    Field{"alpha", &alpha_json, nullptr},
    Field{"accepted_by_position", &value<&R::accepted_by_position>, &join_positions},
    Field{"trips", &value<&R::trips>, &sum<&R::trips>},
    Field{"resumes", &value<&R::resumes>, &sum<&R::resumes>},
    Field{"c", &measured_value<&R::c>, &weighted<&R::c>},
    Field{"v", &measured_value<&R::v>, &weighted<&R::v>},
    Field{"tokens_per_second", &measured_value<&R::tokens_per_second>, &sum<&R::tokens_per_second>},
    Field{"speedup", &measured_value<&R::speedup>, &weighted<&R::speedup>},
};

}  // namespace

JsonValue measured(double ratio) {
  return std::isfinite(ratio) && ratio > 0.0 ? JsonValue(ratio) : JsonValue(nullptr);
}

void add(Receipt& total, const Receipt& part, bool new_prompt) {
  const Weights weights{total.rounds + total.ar_rounds, part.rounds + part.ar_rounds};
  if (new_prompt) {
    total.prompt_tokens += part.prompt_tokens;
    total.cached_tokens += part.cached_tokens;
  }
  total.completion_tokens += part.completion_tokens;
  total.reasoning_tokens += part.reasoning_tokens;
  total.prompt_seconds = std::max(total.prompt_seconds, part.prompt_seconds);
  total.decode_seconds = std::max(total.decode_seconds, part.decode_seconds);
  for (const Field& field : kSpeculation) {
    if (field.join != nullptr) {
      field.join(total, part, weights);
    }
  }
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
           {{"reasoning_tokens", receipt.reasoning_tokens},
            {"accepted_prediction_tokens", receipt.accepted},
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
  JsonValue speculation = JsonValue::object();
  for (const Field& field : kSpeculation) {
    speculation.add_member(std::string(field.key), field.of(receipt));
  }
  return speculation;
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
