#include "engine/arch/qwen_hybrid.h"

#include <cstdint>
#include <utility>

#include "config/base/limits.h"

namespace spel::engine {
namespace {

/// A head's rows of q_proj are its query, then its output gate.
std::vector<RowBlock> every_second(std::size_t heads, std::size_t head_dim, std::size_t first) {
  std::vector<RowBlock> blocks;
  for (std::size_t head = 0; head < heads; ++head) {
    blocks.push_back({static_cast<std::uint32_t>((2 * head + first) * head_dim),
                      static_cast<std::uint32_t>(head_dim)});
  }
  return blocks;
}

void attention_tensors(LayerTensors& t, const TensorNamer& layer, const AttentionSpec& spec,
                       std::size_t d) {
  const std::size_t gated = spec.output_gate ? 2 : 1;
  const TensorSpec q = layer.matrix("self_attn.q_proj.weight", gated * spec.queries_width(), d);
  const TensorSpec k = layer.matrix("self_attn.k_proj.weight", spec.keys_width(), d);
  const TensorSpec v = layer.matrix("self_attn.v_proj.weight", spec.keys_width(), d);
  if (spec.output_gate) {
    t.in = {{q, every_second(spec.heads, spec.head_dim, 0)},
            {k},
            {v},
            {q, every_second(spec.heads, spec.head_dim, 1)}};
  } else {
    t.in = {{q}, {k}, {v}};
  }
  t.out = layer.matrix("self_attn.o_proj.weight", d, spec.queries_width());
  t.q_norm = layer.norm("self_attn.q_norm.weight", spec.head_dim);
  t.k_norm = layer.norm("self_attn.k_norm.weight", spec.head_dim);
}

void delta_tensors(LayerTensors& t, const TensorNamer& layer, const DeltaSpec& spec,
                   std::size_t d) {
  t.out = layer.matrix("linear_attn.out_proj.weight", d, spec.values_width());
  t.conv = {layer.matrix("linear_attn.conv1d.weight", spec.qkv_width(), spec.conv_taps,
                         TensorRole::kConv1d)};
  t.norm = layer.plain_norm("linear_attn.norm.weight", spec.value_dim);
  layer.gates(t, "linear_attn.", spec);
}

}  // namespace

ModelSpec qwen_hybrid_spec(std::string_view text, const std::string& source) {
  const HfConfig config(text, source);
  ModelSpec spec = hf_model_spec(config);
  const DeltaSpec delta = hf_delta_spec(config, 1.0F, spec.rms_norm_eps);
  AttentionSpec attention = hf_attention_spec(config);
  attention.qk_norm = QkNorm::kRmsHead;
  attention.qk_norm_eps = spec.rms_norm_eps;
  attention.output_gate = config.flag_or("attn_output_gate", true);
  const std::size_t d_ff = config.size("intermediate_size", limits::kModelDimMax);
  for (const bool attends : config.attention_layers()) {
    spec.layers.push_back({attends ? MixerSpec(attention) : MixerSpec(delta), d_ff});
  }
  return spec;
}

TensorLayout qwen_hybrid_tensors(const ModelSpec& spec, const TensorNames& names,
                                 const std::string& prefix, const DeltaProjections& projections) {
  TensorLayout layout = hf_tensors(spec, prefix, TensorValues::kOnePlus);
  layout.ignored_prefixes = {"mtp."};  // Another model's layers, which predict one token more.
  for (std::size_t i = 0; i < spec.layers.size(); ++i) {
    const LayerSpec& of = spec.layers[i];
    const TensorNamer layer(prefix + "layers." + std::to_string(i) + ".", TensorValues::kOnePlus);
    refuse_experts(names, layer.name(""));
    LayerTensors& t = layout.target.emplace_back();
    t.input_norm = layer.norm("input_layernorm.weight", spec.d_model);
    if (const auto* delta = std::get_if<DeltaSpec>(&of.mixer)) {
      t.in = projections(layer, *delta, spec.d_model);
      delta_tensors(t, layer, *delta, spec.d_model);
    } else {
      attention_tensors(t, layer, std::get<AttentionSpec>(of.mixer), spec.d_model);
    }
    t.post_norm = layer.norm("post_attention_layernorm.weight", spec.d_model);
    layer.mlp(t, of.d_ff, spec.d_model);
  }
  return layout;
}

}  // namespace spel::engine
