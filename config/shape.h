// Shapes of random models for the command-line tools: SPEL_CONFIG, SPEL_D_MODEL, … and --config.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "config/load.h"

namespace spel::config {

struct ShapeOverrides {
  /// d_model, n_layers, n_heads, head_dim, d_ff, vocab, max_seq, attn_period: those given.
  std::map<std::string, std::uint32_t, std::less<>> values;
  std::vector<std::uint32_t> draft_map;  ///< The target layers the draft copies; empty: not given.
};

/// `list` ("d_model=1024,n_layers=16", the flag; may be empty) over the single variables over
/// SPEL_CONFIG. draft_map in a list is written 0:3:6:9, in SPEL_DRAFT_MAP 0,3,6,9. Throws
/// Error(kInvalidArgument) naming the key, the value and what is allowed.
[[nodiscard]] ShapeOverrides parse_shape_overrides(std::string_view list,
                                                   const Environment& environment);

/// What the command-line tools read from the environment beside the shape.
struct ToolSettings {
  std::string weights;             ///< SPEL_WEIGHTS; empty: not given.
  std::size_t bench_k = 4;         ///< SPEL_BENCH_K, else SPEL_SPEC_K, else 4.
  double verify_tolerance = 1e-3;  ///< SPEL_VERIFY_TOL
  std::size_t draft_threads = 1;   ///< SPEL_DRAFT_THREADS
  std::string kernel = "auto";     ///< SPEL_KERNEL
  std::string isa = "auto";        ///< SPEL_ISA
};
[[nodiscard]] ToolSettings parse_tool_settings(const Environment& environment);

}  // namespace spel::config
