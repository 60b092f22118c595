// OLMo-Hybrid: separate projections and convolutions, a write rate up to 2, attention over q and k
// normalised across all heads, without rotation in the released weights. Attention blocks norm what
// they add, delta blocks norm what they read.
#include "config/base/error.h"
#include "config/base/limits.h"
#include "engine/arch/hybrid_tensors.h"
#include "engine/arch/hybrids.h"

namespace spel::engine {
namespace {

constexpr float kOutputNormEps = 1e-5F;

/// The three convolutions. One exporter splits their rows into equal parts, whatever the widths of
/// q, k and v: only what they are above one another counts.
std::vector<TensorSpec> convolutions(const TensorNamer& layer, const DeltaSpec& spec,
                                     const TensorNames& names) {
  std::vector<TensorSpec> tensors;
  std::size_t rows = 0;
  for (const auto& [name, expected] :
       {std::pair{"linear_attn.q_conv1d.weight", spec.keys_width()},
        std::pair{"linear_attn.k_conv1d.weight", spec.keys_width()},
        std::pair{"linear_attn.v_conv1d.weight", spec.values_width()}}) {
    const auto shape = names.shape(layer.name(name));
    const bool plausible = shape && shape->size() == 3 && (*shape)[0] <= spec.qkv_width();
    const auto found = plausible ? static_cast<std::size_t>((*shape)[0]) : expected;
    tensors.push_back(layer.matrix(name, found, spec.conv_taps, TensorRole::kConv1d));
    rows += found;
  }
  if (rows != spec.qkv_width()) {
    throw Error(ErrorCode::kCorrupt, "tensors " + layer.name("linear_attn.*_conv1d.weight") +
                                         " have " + std::to_string(rows) + " rows; expected " +
                                         std::to_string(spec.qkv_width()) + " from config.json");
  }
  return tensors;
}

void delta_tensors(LayerTensors& t, const TensorNamer& layer, const DeltaSpec& spec,
                   const TensorNames& names, std::size_t d) {
  const auto part = [&](std::string_view name, std::size_t rows) {
    return TensorRows{layer.matrix("linear_attn." + std::string(name) + "_proj.weight", rows, d)};
  };
  t.in = {part("q", spec.keys_width()),   part("k", spec.keys_width()),
          part("v", spec.values_width()), part("g", spec.values_width()),
          part("b", spec.value_heads),    part("a", spec.value_heads)};
  t.out = layer.matrix("linear_attn.o_proj.weight", d, spec.values_width());
  t.conv = convolutions(layer, spec, names);
  t.norm = layer.norm("linear_attn.o_norm.weight", spec.value_dim);
  layer.gates(t, "linear_attn.", spec);
}

void attention_tensors(LayerTensors& t, const TensorNamer& layer, const AttentionSpec& spec,
                       std::size_t d) {
  t.in = {{layer.matrix("self_attn.q_proj.weight", spec.queries_width(), d)},
          {layer.matrix("self_attn.k_proj.weight", spec.keys_width(), d)},
          {layer.matrix("self_attn.v_proj.weight", spec.keys_width(), d)}};
  t.out = layer.matrix("self_attn.o_proj.weight", d, spec.queries_width());
  t.q_norm = layer.norm("self_attn.q_norm.weight", spec.queries_width());
  t.k_norm = layer.norm("self_attn.k_norm.weight", spec.keys_width());
}

/// The first of two names that is there.
std::string either(const TensorNamer& layer, const TensorNames& names, std::string_view one,
                   std::string_view other) {
  return std::string(names.shape(layer.name(one)) ? one : other);
}

}  // namespace

ModelSpec olmo_hybrid_spec(std::string_view text, const std::string& source) {
  const HfConfig config(text, source);
  ModelSpec spec = hf_model_spec(config);
  const float write_scale = config.flag_or("linear_allow_neg_eigval", false) ? 2.0F : 1.0F;
  const DeltaSpec delta = hf_delta_spec(config, write_scale, kOutputNormEps);
  AttentionSpec attention = hf_attention_spec(config);
  attention.qk_norm = QkNorm::kRmsWidth;
  attention.qk_norm_eps = spec.rms_norm_eps;
  const std::size_t d_ff = config.size("intermediate_size", limits::kModelDimMax);
  for (const bool attends : config.attention_layers()) {
    spec.layers.push_back(attends ? LayerSpec{attention, d_ff, NormPlace::kAfter}
                                  : LayerSpec{delta, d_ff, NormPlace::kBefore});
  }
  return spec;
}

TensorLayout olmo_hybrid_tensors(const ModelSpec& spec, const TensorNames& names) {
  TensorLayout layout = hf_tensors(spec, "model.", TensorValues::kAsStored);
  for (std::size_t i = 0; i < spec.layers.size(); ++i) {
    const TensorNamer layer("model.layers." + std::to_string(i) + ".", TensorValues::kAsStored);
    refuse_experts(names, layer.name(""));
    LayerTensors& t = layout.target.emplace_back();
    if (const auto* delta = std::get_if<DeltaSpec>(&spec.layers[i].mixer)) {
      t.input_norm =
          layer.norm(either(layer, names, "attention_layer_norm.weight", "input_layernorm.weight"),
                     spec.d_model);
      t.post_norm = layer.norm(
          either(layer, names, "feedforward_layer_norm.weight", "post_attention_layernorm.weight"),
          spec.d_model);
      delta_tensors(t, layer, *delta, names, spec.d_model);
    } else {
      // The same exporter gives the first of these the name of another.
      t.input_norm = layer.norm(
          either(layer, names, "post_attention_layernorm.weight", "feedforward_layer_norm.weight"),
          spec.d_model);
      t.post_norm = layer.norm("post_feedforward_layernorm.weight", spec.d_model);
      attention_tensors(t, layer, std::get<AttentionSpec>(spec.layers[i].mixer), spec.d_model);
    }
    layer.mlp(t, spec.layers[i].d_ff, spec.d_model);
  }
  return layout;
}

}  // namespace spel::engine
