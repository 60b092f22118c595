// GET /health… and GET /v1/stats.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "proto/generation.h"

namespace spel::proto {

/// {"status":"ok"}
[[nodiscard]] std::string health_body();
/// The body of a 503 of the health endpoints: "loading" or "draining", as an error like any other.
[[nodiscard]] std::string health_unavailable_body(std::string_view state);

/// One consistent snapshot; counters since start unless said.
struct StatsSnapshot {
  std::string state;  ///< "loading" | "ready" | "draining"
  std::string version;
  double uptime_seconds = 0.0;

  struct Model {
    std::string id;
    std::size_t max_seq = 0;
    std::size_t vocab_size = 0;
    std::uint64_t parameters = 0;
    std::uint64_t draft_parameters = 0;
    std::string weights_dtype;
    bool has_draft = false;
  } model;

  struct Compute {
    std::string isa;     ///< Of the float kernels: "avx512" | "avx2" | "neon" | "scalar".
    std::string kernel;  ///< Of the ternary products: "dotprod" | "addsub" | "scalar".
    std::string numerics;
    std::size_t target_threads = 0;
    std::size_t draft_threads = 0;
  } compute;

  struct Requests {
    std::uint64_t submitted = 0;
    std::uint64_t rejected = 0;
    std::uint64_t stop = 0;
    std::uint64_t length = 0;
    std::uint64_t cancelled = 0;
    std::uint64_t deadline = 0;
    std::uint64_t error = 0;
    std::size_t running = 0;
    std::size_t waiting = 0;
    std::size_t sequences = 0;  ///< Capacity for running …
    std::size_t queue = 0;      ///< … and for waiting.
  } requests;

  struct Tokens {
    std::uint64_t prompt = 0;
    std::uint64_t cached = 0;
    std::uint64_t generated = 0;
  } tokens;

  struct Speculation {
    std::size_t k = 0;  ///< The server's default.
    std::size_t k_max = 0;
    GovernorKind governor = GovernorKind::kAdaptive;
    std::uint64_t rounds = 0;
    std::uint64_t plain_rounds = 0;
    std::uint64_t proposed = 0;
    std::uint64_t accepted = 0;
    std::uint64_t discarded = 0;
    std::vector<std::uint64_t> accepted_by_position;
    std::uint64_t trips = 0;
    std::uint64_t resumes = 0;
    double acceptance_ratio = 0.0;   ///< Now, over the last rounds.
    double c = 0.0;                  ///< Now.
    double v = 0.0;                  ///< Now …
    std::size_t v_tokens = 0;        ///< … at so many tokens a verification.
    double tokens_per_second = 0.0;  ///< Now.
    double ar_seconds_per_token = 0.0;
  } speculation;

  struct Seconds {
    double prefill = 0.0;
    double draft = 0.0;
    double verify = 0.0;
    double plain = 0.0;
  } seconds;

  struct Memory {
    std::uint64_t resident_bytes = 0;
    std::uint64_t weight_bytes = 0;
    std::uint64_t state_bytes = 0;
    std::size_t prefix_entries = 0;
  } memory;

  struct Http {
    std::size_t connections = 0;
    std::uint64_t requests = 0;
    std::uint64_t unknown_fields = 0;
  } http;
};
[[nodiscard]] std::string stats_response(const StatsSnapshot& stats);

}  // namespace spel::proto
