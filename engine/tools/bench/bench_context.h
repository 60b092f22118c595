// What every part of `spel bench` is given.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/document/load_model.h"
#include "engine/model/weights.h"
#include "engine/tools/bench/report.h"
#include "kernels/kernels.h"

namespace spel::engine::tools {

/// The model measured. Weights are packed when a part needs them and dropped after it.
struct BenchModel {
  std::string label;  ///< "default", "scaled" or "custom": part of the figures' names.
  std::string description;
  std::shared_ptr<const ModelSource> source;
};

struct BenchOptions {
  std::size_t runs = 5;            ///< Each figure is the median of this many.
  double min_seconds = 0.01;       ///< Short bodies are repeated this long.
  std::size_t k = 4;               ///< Proposals per round.
  std::size_t draft_threads = 1;   ///< Most draft threads shown.
  std::size_t decode_tokens = 64;  ///< Generated per run.
  std::size_t read_bytes = 0;      ///< Of the bandwidth test.
  float temperature = 0.0F;
  std::optional<std::string> prompts_file;
};

struct BenchContext {
  const kernels::Kernels& kernels;
  const BenchOptions& options;
  Report& report;
};

/// B1: the matrix kernels on the document's 4096 x 1536.
void bench_kernels(const BenchContext& context);
/// Choosing one token of 248,320, in the ways requests ask for.
void bench_sampling(const BenchContext& context);
/// B2: what a pass of M tokens costs in units of a single token.
void bench_verification(const BenchContext& context, const BenchModel& model);
/// Plain decoding against the memory: f32 and bf16, one and two threads.
void bench_plain(const BenchContext& context, const BenchModel& model);
/// B3: decoding on the document's two prompts, and the forced ceilings.
void bench_decode(const BenchContext& context, const BenchModel& model);
/// Acceptance and speedup on the prompts of a file.
void bench_prompts(const BenchContext& context, const BenchModel& model);
/// B4: taking tokens back against copying a KV cache.
void bench_rollback(const BenchContext& context, const BenchModel& model);

}  // namespace spel::engine::tools
