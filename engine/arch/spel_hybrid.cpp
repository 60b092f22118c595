#include "engine/arch/spel_hybrid.h"

#include <cmath>
#include <span>
#include <string>
#include <vector>

#include "config/base/error.h"
#include "config/base/limits.h"

namespace spel::engine {
namespace {

[[noreturn]] void refuse(const std::string& field, const std::string& found,
                         const std::string& expected) {
  throw Error(ErrorCode::kCorrupt,
              "model config: " + field + " is " + found + "; expected " + expected);
}

void require_range(const char* field, std::uint32_t value, std::uint32_t low, std::uint32_t high) {
  if (value < low || value > high) {
    refuse(field, std::to_string(value), std::to_string(low) + " to " + std::to_string(high));
  }
}

void require_real(const char* field, double value, double low, double high) {
  if (!std::isfinite(value) || value < low || value > high) {
    refuse(field, std::to_string(value), std::to_string(low) + " to " + std::to_string(high));
  }
}

/// Four ternary codes share a byte, so a row must fill its bytes.
void require_multiple_of_four(const char* field, std::uint32_t value) {
  if (value % 4 != 0) {
    refuse(field, std::to_string(value), "a multiple of 4 (four ternary weights share a byte)");
  }
}

void require_token(const char* field, std::int32_t value, std::uint32_t vocab) {
  if (value < -1 || (value >= 0 && static_cast<std::uint32_t>(value) >= vocab)) {
    refuse(field, std::to_string(value), "none or a token below vocab_size");
  }
}

LayerSpec layer_spec(const ModelConfig& c, std::size_t layer) {
  if (c.is_attention(layer)) {
    return {.mixer = AttentionSpec{.heads = c.n_heads,
                                   .kv_heads = c.n_heads,
                                   .head_dim = c.head_dim,
                                   .logit_scale = c.attn_logit_scale,
                                   .qk_norm = QkNorm::kLength,
                                   .qk_norm_eps = c.l2_norm_eps,
                                   .rope = RopeSpec{.pairs = RopePairs::kNeighbours,
                                                    .dims = c.head_dim,
                                                    .theta = c.rope_theta}},
            .d_ff = c.d_ff};
  }
  return {.mixer = DeltaSpec{.key_heads = c.n_heads,
                             .value_heads = c.n_heads,
                             .key_dim = c.head_dim,
                             .value_dim = c.head_dim,
                             .conv_taps = c.conv_taps,
                             .conv_place = ConvPlace::kInput,
                             .conv_activation = c.conv_activation,
                             .read_order = c.read_order,
                             .l2_norm_eps = c.l2_norm_eps,
                             .input_gates = {},
                             .gated_norm = {}},
          .d_ff = c.d_ff};
}

ModelSpec spec_of(const ModelConfig& c, std::span<const std::uint32_t> layers) {
  ModelSpec spec{.name = c.name,
                 .d_model = c.d_model,
                 .vocab_size = c.vocab_size,
                 .max_seq = c.max_seq,
                 .rms_norm_eps = c.rms_norm_eps,
                 .end_tokens = {},
                 .layers = {}};
  if (c.eos_token_id >= 0) {
    spec.end_tokens.push_back(c.eos_token_id);
  }
  for (const std::uint32_t layer : layers) {
    spec.layers.push_back(layer_spec(c, layer));
  }
  return spec;
}

/// `name`: the layer's number in the target.
LayerTensors layer_tensors(const ModelSpec& spec, const LayerSpec& layer, std::size_t name,
                           bool in_draft) {
  const std::string prefix = "layers." + std::to_string(name) + ".";
  const auto tensor = [&](const char* suffix, TensorRole role, std::size_t rows, std::size_t cols) {
    return TensorSpec{prefix + suffix, role, in_draft, static_cast<std::uint32_t>(rows),
                      static_cast<std::uint32_t>(cols)};
  };
  const std::size_t d = spec.d_model;
  LayerTensors t;
  t.input_norm = tensor("input_norm.weight", TensorRole::kNorm, d, 1);
  t.in = {{tensor("mixer.qkv_proj.weight", TensorRole::kProjection, in_width(layer.mixer), d)}};
  t.out = tensor("mixer.out_proj.weight", TensorRole::kProjection, d, inner_width(layer.mixer));
  if (const auto* delta = std::get_if<DeltaSpec>(&layer.mixer)) {
    t.conv = {tensor("mixer.conv.weight", TensorRole::kConv, d, delta->conv_taps)};
    t.decay = tensor("mixer.decay", TensorRole::kDecay, delta->value_heads, 1);
    t.write = tensor("mixer.write", TensorRole::kWrite, delta->value_heads, 1);
  }
  t.post_norm = tensor("post_norm.weight", TensorRole::kNorm, d, 1);
  t.gate = tensor("mlp.gate_proj.weight", TensorRole::kMlp, layer.d_ff, d);
  t.up = tensor("mlp.up_proj.weight", TensorRole::kMlp, layer.d_ff, d);
  t.down = tensor("mlp.down_proj.weight", TensorRole::kMlp, d, layer.d_ff);
  return t;
}

}  // namespace

// None of the counts can wrap for a validated config: 2^20 x 2^16 for the vocabulary and 2^10
// layers x 7 x 2^32 stay far below 2^64.

std::uint64_t ModelConfig::target_parameters() const {
  return spel_hybrid_spec(*this).parameters();
}

std::uint64_t ModelConfig::draft_parameters() const {
  const std::uint64_t shared = 2 * std::uint64_t{d_model} * vocab_size + d_model;
  return spel_hybrid_draft_spec(*this).parameters() - shared;
}

std::uint64_t ModelConfig::draft_packed_bytes() const {
  const std::uint64_t d = d_model;
  const std::uint64_t ff = d_ff;
  const std::uint64_t int8_bytes = 4 * d * d;          // qkv and out, one byte a weight
  const std::uint64_t ternary_bytes = 3 * d * ff / 4;  // gate, up and down, four weights a byte
  const std::uint64_t scale_rows = 4 * d + 2 * ff + d;
  return draft_layers.size() * (int8_bytes + ternary_bytes + sizeof(float) * scale_rows);
}

void ModelConfig::validate() const {
  require_range("d_model", d_model, 4, limits::kModelDimMax);
  require_range("n_layers", n_layers, 1, limits::kLayersMax);
  require_range("n_heads", n_heads, 1, limits::kHeadsMax);
  require_range("head_dim", head_dim, 2, limits::kModelDimMax);
  require_range("d_ff", d_ff, 4, limits::kModelDimMax);
  require_range("vocab_size", vocab_size, 1, limits::kVocabMax);
  require_range("max_seq", max_seq, 1, limits::kMaxSeqMax);
  require_range("attn_period", attn_period, 1, limits::kLayersMax);
  require_range("conv_taps", conv_taps, 1, limits::kConvTapsMax);
  require_multiple_of_four("d_model", d_model);
  require_multiple_of_four("d_ff", d_ff);
  if (head_dim % 2 != 0) {
    refuse("head_dim", std::to_string(head_dim), "an even number (rotary pairs)");
  }
  if (attn_width() != d_model) {
    refuse("n_heads * head_dim", std::to_string(attn_width()),
           "d_model (" + std::to_string(d_model) + ")");
  }
  require_real("attn_logit_scale", attn_logit_scale, 1e-6, 1e6);
  require_real("rope_theta", rope_theta, 1.0, 1e12);
  require_real("rms_norm_eps", rms_norm_eps, 1e-20, 1.0);
  require_real("l2_norm_eps", l2_norm_eps, 1e-20, 1.0);
  if (gates != GateKind::kStatic) {
    refuse("gates", "\"input\"", "\"static\": this build has no data-dependent gates");
  }
  if (tie_word_embeddings) {
    refuse("tie_word_embeddings", "true", "false: this build has a separate LM head");
  }
  require_token("bos_token_id", bos_token_id, vocab_size);
  require_token("eos_token_id", eos_token_id, vocab_size);
  if (draft_layers.empty() || draft_layers.size() > n_layers) {
    refuse("draft.layers", std::to_string(draft_layers.size()) + " entries",
           "1 to n_layers (" + std::to_string(n_layers) + ") entries");
  }
  for (std::size_t i = 0; i < draft_layers.size(); ++i) {
    if (draft_layers[i] >= n_layers) {
      refuse("draft.layers[" + std::to_string(i) + "]", std::to_string(draft_layers[i]),
             "a layer below n_layers (" + std::to_string(n_layers) + ")");
    }
    if (i > 0 && draft_layers[i] <= draft_layers[i - 1]) {
      refuse("draft.layers[" + std::to_string(i) + "]", std::to_string(draft_layers[i]),
             "more than the entry before it (" + std::to_string(draft_layers[i - 1]) + ")");
    }
  }
}

ModelConfig ModelConfig::default_shape() { return ModelConfig{}; }

ModelConfig ModelConfig::scaled_shape() {
  ModelConfig config;
  config.d_model = 1024;
  config.n_layers = 16;
  config.n_heads = 16;
  config.head_dim = 64;
  config.d_ff = 3072;
  return config;
}

ModelSpec spel_hybrid_spec(const ModelConfig& config) {
  std::vector<std::uint32_t> layers(config.n_layers);
  for (std::uint32_t i = 0; i < config.n_layers; ++i) {
    layers[i] = i;
  }
  return spec_of(config, layers);
}

ModelSpec spel_hybrid_draft_spec(const ModelConfig& config) {
  return spec_of(config, config.draft_layers);
}

TensorLayout spel_hybrid_tensors(const ModelSpec& spec) {
  const auto vocab = static_cast<std::uint32_t>(spec.vocab_size);
  const auto d_model = static_cast<std::uint32_t>(spec.d_model);
  TensorLayout layout;
  layout.embedding = {"embed_tokens.weight", TensorRole::kEmbedding, false, vocab, d_model};
  layout.final_norm = {"norm.weight", TensorRole::kNorm, false, d_model, 1};
  layout.lm_head = TensorSpec{"lm_head.weight", TensorRole::kHead, false, vocab, d_model};
  for (std::size_t i = 0; i < spec.layers.size(); ++i) {
    layout.target.push_back(layer_tensors(spec, spec.layers[i], i, false));
  }
  return layout;
}

TensorLayout tensor_layout(const ModelConfig& config) {
  const ModelSpec spec = spel_hybrid_spec(config);
  TensorLayout layout = spel_hybrid_tensors(spec);
  for (const std::uint32_t layer : config.draft_layers) {
    layout.draft.push_back(layer_tensors(spec, spec.layers[layer], layer, true));
  }
  return layout;
}

ModelWeights pack_spel_hybrid(const ModelConfig& config, const TensorReader& reader,
                              WeightsDtype dtype) {
  const TensorLayout tensors = tensor_layout(config);
  ModelWeights weights;
  weights.shared = pack_shared(tensors, reader, dtype);
  weights.target = pack_dense(spel_hybrid_spec(config), tensors.target, reader, dtype);
  weights.draft = pack_ternary(spel_hybrid_draft_spec(config), tensors.draft, reader);
  return weights;
}

}  // namespace spel::engine
