// B4.
#include <algorithm>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "config/base/limits.h"
#include "engine/state/hybrid_state.h"
#include "engine/tools/bench/bench_context.h"
#include "kernels/matrix.h"

namespace spel::engine::tools {
namespace {

/// The document measures against a cache of this many positions.
constexpr std::size_t kPositions = 512;
/// Sequences that stand ready, so that the clock is read once for many rollbacks.
constexpr std::size_t kSequences = 256;

/// A state whose rollback does exactly what the model's does, with as little memory around it as
/// possible: the primitive touches none of it.
StateLayout small_layout() {
  ModelConfig config;
  config.d_model = 16;
  config.n_heads = 1;
  config.head_dim = 16;
  config.n_layers = 2;
  config.attn_period = 2;
  return {spel_hybrid_spec(config), 32, limits::kSpecKMax + 1};
}

std::size_t kv_bytes(const ModelConfig& config) {
  std::size_t attention_layers = 0;
  for (std::size_t layer = 0; layer < config.n_layers; ++layer) {
    attention_layers += config.is_attention(layer) ? 1 : 0;
  }
  return attention_layers * 2 * kPositions * config.attn_width() * sizeof(float);
}

/// Seconds of one rollback by one token, [run].
std::vector<double> time_rollbacks(std::size_t runs) {
  const StateLayout layout = small_layout();
  std::vector<std::unique_ptr<HybridState>> owned;
  owned.reserve(kSequences);
  for (std::size_t i = 0; i < kSequences; ++i) {
    owned.push_back(std::make_unique<HybridState>(layout));
  }
  std::vector<SequenceState*> states;
  states.reserve(owned.size());
  for (const auto& state : owned) {
    states.push_back(state.get());
  }
  std::vector<double> seconds;
  for (std::size_t run = 0; run <= runs; ++run) {
    for (const auto& state : owned) {
      state->reset();
      state->advance(layout.ring_slots, true);
    }
    const auto begin = Clock::now();
    // In turns, as the sequences of a batch are rolled back: one sequence over and over would time
    // how long its index takes to come back from the store buffer.
    for (std::size_t i = 0; i < limits::kSpecKMax; ++i) {
      for (SequenceState* state : states) {
        state->rollback(1);
      }
    }
    const double total = seconds_between(begin, Clock::now());
    if (run > 0) {
      seconds.push_back(total / static_cast<double>(kSequences * limits::kSpecKMax));
    }
  }
  return seconds;
}

}  // namespace

void bench_rollback(const BenchContext& context, const BenchModel& model) {
  context.report.progress("B4: rollback, " + model.label + " shape");
  const std::size_t bytes = kv_bytes(model.source->config());
  const kernels::AlignedBuffer from(bytes);
  kernels::AlignedBuffer to(bytes);
  const std::vector<std::function<void()>> bodies = {
      [&] { std::memcpy(to.data(), from.data(), bytes); }};
  const auto copies = take_turns(bodies, context.options.runs, context.options.min_seconds).front();
  const auto rollbacks = time_rollbacks(context.options.runs);
  const Spread rollback = spread_of(scaled(rollbacks, 1e9));
  const Spread copy = spread_of(scaled(copies, 1e6));
  const Spread ratio = spread_of(ratios(copies, rollbacks));
  Report& report = context.report;
  report.table("B4  taking tokens back; " + model.description,
               {{"path", 40}, {"time", 26}, {"ratio", 8}});
  report.row({"rollback: move an index (rate over " + std::to_string(kSequences) + ")",
              with_range(rollback, 2) + " ns", "1"});
  report.row({"copying the KV cache, " + fixed(static_cast<double>(bytes) / (1 << 20), 2) + " MiB",
              with_range(copy, 1) + " us", fixed(ratio.median, 0)});
  const std::vector<std::pair<std::string, std::string>> fields = {
      {"shape", model.description}, {"kv_positions", std::to_string(kPositions)}};
  auto rate_fields = fields;
  rate_fields.emplace_back("clock", "rate over " + std::to_string(kSequences) +
                                        " small states in cache, not the time of one");
  report.figure({"rollback_ns", rollback, "ns", rate_fields});
  report.figure({"kv_copy_us", copy, "us", fields});
  report.figure({"kv_copy_ratio", ratio, "x rollback", fields});
}

}  // namespace spel::engine::tools
