#include "engine/arch/hybrid_tensors.h"

#include <cmath>
#include <cstdint>

#include "config/base/error.h"
#include "config/base/limits.h"

namespace spel::engine {
namespace {

constexpr float kL2NormEps = 1e-6F;
constexpr double kEpsMin = 1e-20;
constexpr std::size_t kConvTapsDefault = 4;

std::uint32_t narrow(std::size_t n) { return static_cast<std::uint32_t>(n); }

}  // namespace

ModelSpec hf_model_spec(const HfConfig& config) {
  config.require_text("hidden_act", "silu");
  ModelSpec spec;
  spec.d_model = config.size("hidden_size", limits::kModelDimMax);
  spec.vocab_size = config.size("vocab_size", limits::kVocabMax);
  spec.max_seq = config.size("max_position_embeddings", limits::kMaxSeqMax);
  spec.rms_norm_eps = static_cast<float>(config.real("rms_norm_eps", kEpsMin, 1.0));
  spec.tied_embeddings = config.tied();
  spec.end_tokens = config.ids("eos_token_id", spec.vocab_size);
  return spec;
}

DeltaSpec hf_delta_spec(const HfConfig& config, float write_scale, float norm_eps) {
  DeltaSpec spec{
      .key_heads = config.size("linear_num_key_heads", limits::kHeadsMax),
      .value_heads = config.size("linear_num_value_heads", limits::kHeadsMax),
      .key_dim = config.size("linear_key_head_dim", limits::kHeadDimMax),
      .value_dim = config.size("linear_value_head_dim", limits::kHeadDimMax),
      .conv_taps = config.size_or("linear_conv_kernel_dim", limits::kConvTapsMax, kConvTapsDefault),
      .conv_place = ConvPlace::kProjection,
      .conv_activation = ConvActivation::kSilu,
      .read_order = ReadOrder::kAfterDecay,
      .l2_norm_eps = kL2NormEps,
      .input_gates = InputGates{.write_scale = write_scale},
      .gated_norm = GatedNorm{.eps = norm_eps}};
  if (spec.value_heads % spec.key_heads != 0) {
    config.refuse("linear_num_value_heads", std::to_string(spec.value_heads),
                  "a multiple of linear_num_key_heads (" + std::to_string(spec.key_heads) + ")");
  }
  return spec;
}

AttentionSpec hf_attention_spec(const HfConfig& config) {
  config.require_flag("attention_bias", false);
  config.require_flag("use_sliding_window", false);
  const std::size_t d_model = config.size("hidden_size", limits::kModelDimMax);
  AttentionSpec spec;
  spec.heads = config.size("num_attention_heads", limits::kHeadsMax);
  spec.kv_heads = config.size_or("num_key_value_heads", limits::kHeadsMax, spec.heads);
  if (spec.heads % spec.kv_heads != 0) {
    config.refuse("num_attention_heads", std::to_string(spec.heads),
                  "a multiple of num_key_value_heads (" + std::to_string(spec.kv_heads) + ")");
  }
  if (!config.has("head_dim") && d_model % spec.heads != 0) {
    config.refuse("num_attention_heads", std::to_string(spec.heads),
                  "a divisor of hidden_size (" + std::to_string(d_model) + "), or head_dim");
  }
  spec.head_dim = config.size_or("head_dim", limits::kHeadDimMax, d_model / spec.heads);
  spec.logit_scale = 1.0F / std::sqrt(static_cast<float>(spec.head_dim));
  spec.rope = config.rope(spec.head_dim);
  spec.in_blocks = true;
  return spec;
}

TensorSpec TensorNamer::norm(std::string_view suffix, std::size_t values) const {
  TensorSpec tensor = plain_norm(suffix, values);
  tensor.values_are = norms_;
  return tensor;
}

TensorSpec TensorNamer::plain_norm(std::string_view suffix, std::size_t values) const {
  return {.name = name(suffix), .role = TensorRole::kNorm, .rows = narrow(values)};
}

TensorSpec TensorNamer::matrix(std::string_view suffix, std::size_t rows, std::size_t cols,
                               TensorRole role) const {
  return {.name = name(suffix), .role = role, .rows = narrow(rows), .cols = narrow(cols)};
}

void TensorNamer::mlp(LayerTensors& layer, std::size_t d_ff, std::size_t d_model) const {
  layer.gate = matrix("mlp.gate_proj.weight", d_ff, d_model, TensorRole::kMlp);
  layer.up = matrix("mlp.up_proj.weight", d_ff, d_model, TensorRole::kMlp);
  layer.down = matrix("mlp.down_proj.weight", d_model, d_ff, TensorRole::kMlp);
}

void TensorNamer::gates(LayerTensors& layer, std::string_view mixer, const DeltaSpec& spec) const {
  const auto gate = [&](std::string_view suffix, TensorValues values) {
    return TensorSpec{.name = name(mixer) + std::string(suffix),
                      .role = TensorRole::kGate,
                      .rows = narrow(spec.value_heads),
                      .values_are = values};
  };
  layer.decay_rate = gate("A_log", TensorValues::kExp);
  layer.step_bias = gate("dt_bias", TensorValues::kAsStored);
}

void refuse_experts(const TensorNames& names, const std::string& layer) {
  for (const char* suffix : {"mlp.gate.weight", "mlp.experts.", "mlp.shared_expert."}) {
    const std::string name = layer + suffix;
    if (names.any_begins(name)) {
      throw Error(ErrorCode::kCorrupt,
                  "tensors " + name +
                      "*: this layer is a mixture of experts (MoE), which this "
                      "build does not run; expected mlp.gate_proj, mlp.up_proj and mlp.down_proj");
    }
  }
}

TensorLayout hf_tensors(const ModelSpec& spec, const std::string& prefix, TensorValues norms) {
  const TensorNamer model(prefix, norms);
  TensorLayout layout;
  layout.embedding =
      model.matrix("embed_tokens.weight", spec.vocab_size, spec.d_model, TensorRole::kEmbedding);
  layout.final_norm = model.norm("norm.weight", spec.d_model);
  if (!spec.tied_embeddings) {
    layout.lm_head = TensorNamer("", norms).matrix("lm_head.weight", spec.vocab_size, spec.d_model,
                                                   TensorRole::kHead);
  }
  return layout;
}

}  // namespace spel::engine
