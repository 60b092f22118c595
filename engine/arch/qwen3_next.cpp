// Qwen3-Next, where every MLP is dense. Its two fused projections interleave the key heads:
// [q | k | v of its value heads | z of them] and [b of its value heads | a of them] for each.
#include <cstdint>

#include "engine/arch/hybrids.h"
#include "engine/arch/qwen_hybrid.h"

namespace spel::engine {
namespace {

/// Of each of `groups` blocks of `period` rows, `count` from `begin`.
std::vector<RowBlock> of_each(std::size_t groups, std::size_t period, std::size_t begin,
                              std::size_t count) {
  std::vector<RowBlock> blocks;
  for (std::size_t group = 0; group < groups; ++group) {
    blocks.push_back(
        {static_cast<std::uint32_t>(group * period + begin), static_cast<std::uint32_t>(count)});
  }
  return blocks;
}

std::vector<TensorRows> projections(const TensorNamer& layer, const DeltaSpec& spec,
                                    std::size_t d) {
  const std::size_t heads = spec.value_heads / spec.key_heads;
  const std::size_t values = heads * spec.value_dim;
  const std::size_t period = 2 * spec.key_dim + 2 * values;
  const TensorSpec qkvz =
      layer.matrix("linear_attn.in_proj_qkvz.weight", spec.key_heads * period, d);
  const TensorSpec ba = layer.matrix("linear_attn.in_proj_ba.weight", 2 * spec.value_heads, d);
  const auto part = [&](std::size_t begin, std::size_t count) {
    return TensorRows{qkvz, of_each(spec.key_heads, period, begin, count)};
  };
  return {part(0, spec.key_dim),
          part(spec.key_dim, spec.key_dim),
          part(2 * spec.key_dim, values),
          part(2 * spec.key_dim + values, values),
          {ba, of_each(spec.key_heads, 2 * heads, 0, heads)},
          {ba, of_each(spec.key_heads, 2 * heads, heads, heads)}};
}

}  // namespace

ModelSpec qwen3_next_spec(std::string_view config, const std::string& source) {
  return qwen_hybrid_spec(config, source);
}

TensorLayout qwen3_next_tensors(const ModelSpec& spec, const TensorNames& names) {
  return qwen_hybrid_tensors(spec, names, "model.", projections);
}

}  // namespace spel::engine
