// What the SPEL_… variables say to the command-line tools. Every function throws
// Error(kInvalidArgument) naming the variable, its value and what is allowed; one that is set and
// empty has the value "".
#pragma once

#include <cstddef>
#include <filesystem>
#include <optional>
#include <string>

#include "engine/tools/values.h"
#include "kernels/kernels.h"

namespace spel::engine::tools {

/// Refuses any variable below, and those of the shape, that holds what is not allowed, whether the
/// tool at hand reads it or not. For the start of every tool.
void check_environment();

/// SPEL_WEIGHTS, or SPEL_MODEL, its other name; refused where they differ.
[[nodiscard]] std::optional<std::filesystem::path> model_from_environment();

/// The kernel set SPEL_ISA names, or the best of this machine; sets it cannot run are refused.
[[nodiscard]] const kernels::Kernels& kernels_from_environment();

/// SPEL_KERNEL: how the draft's ternary rows are multiplied. The same bits in every case.
[[nodiscard]] kernels::TernaryKernel ternary_from_environment();

/// SPEL_DRAFT_THREADS.
[[nodiscard]] std::size_t draft_threads_from_environment(std::size_t fallback);

/// SPEL_SPEC_K, 0 to 16: proposals a round where the command line does not say.
[[nodiscard]] std::size_t spec_k_from_environment(std::size_t fallback);

/// SPEL_BENCH_K, else SPEL_SPEC_K, else the engine's default; not 0, which would measure nothing.
[[nodiscard]] std::size_t bench_k_from_environment();

/// SPEL_MAX_SEQ, or the model's own length where that is less or nothing is set.
[[nodiscard]] std::size_t context_from_environment(std::size_t model_max_seq);

/// SPEL_VERIFY_TOL: the largest error of a logit that verify-weights passes; 1e-3 if not set.
[[nodiscard]] double tolerance_from_environment();

}  // namespace spel::engine::tools
