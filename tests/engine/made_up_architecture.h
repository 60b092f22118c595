// An architecture that no one has published: six layers, attention every third, a SiLU convolution
// of four taps. What a new one takes: this file, and a line in a list of architectures.
#pragma once

#include <string>
#include <string_view>

#include "config/base/error.h"
#include "config/json/reader.h"
#include "engine/arch/architecture.h"

namespace spel::engine::testing {

inline std::size_t made_up_size(const JsonValue& config, const char* key) {
  const JsonValue* value = config.find(key);
  if (value == nullptr || !value->is_number_unsigned()) {
    throw Error(ErrorCode::kCorrupt, std::string(key) + " is missing; expected a number");
  }
  return value->get<std::size_t>();
}

inline ModelSpec made_up_spec(std::string_view text, const std::string& /*source*/) {
  const JsonValue config = read_json(text);
  ModelSpec spec{.name = "made up",
                 .d_model = made_up_size(config, "hidden_size"),
                 .vocab_size = made_up_size(config, "vocab_size"),
                 .max_seq = made_up_size(config, "max_position_embeddings"),
                 .rms_norm_eps = 1e-6F,
                 .end_tokens = {},
                 .layers = {}};
  const std::size_t heads = made_up_size(config, "num_attention_heads");
  for (std::size_t layer = 0; layer < 6; ++layer) {
    MixerSpec mixer = DeltaSpec{.key_heads = heads,
                                .value_heads = heads,
                                .key_dim = spec.d_model / heads,
                                .value_dim = spec.d_model / heads,
                                .conv_taps = 4,
                                .conv_place = ConvPlace::kInput,
                                .conv_activation = ConvActivation::kSilu,
                                .read_order = ReadOrder::kAfterDecay,
                                .l2_norm_eps = 1e-6F,
                                .input_gates = {},
                                .gated_norm = {}};
    if (layer % 3 == 2) {
      const std::size_t head_dim = spec.d_model / heads;
      mixer = AttentionSpec{
          .heads = heads,
          .kv_heads = heads,
          .head_dim = head_dim,
          .logit_scale = 8.0F,
          .qk_norm = QkNorm::kLength,
          .qk_norm_eps = 1e-6F,
          .rope = RopeSpec{.pairs = RopePairs::kNeighbours, .dims = head_dim, .theta = 1e5}};
    }
    spec.layers.push_back({mixer, made_up_size(config, "intermediate_size")});
  }
  return spec;
}

inline TensorLayout made_up_tensors(const ModelSpec& spec, const TensorNames& /*names*/) {
  const auto tensor = [](std::string name, TensorRole role, std::size_t rows, std::size_t cols) {
    return TensorSpec{std::move(name), role, false, static_cast<std::uint32_t>(rows),
                      static_cast<std::uint32_t>(cols)};
  };
  const std::size_t d = spec.d_model;
  TensorLayout tensors;
  tensors.embedding = tensor("model.embed.weight", TensorRole::kEmbedding, spec.vocab_size, d);
  tensors.final_norm = tensor("model.norm.weight", TensorRole::kNorm, d, 1);
  tensors.lm_head = tensor("head.weight", TensorRole::kHead, spec.vocab_size, d);
  for (std::size_t i = 0; i < spec.layers.size(); ++i) {
    const MixerSpec& mixer = spec.layers[i].mixer;
    const std::string prefix = "model.blocks." + std::to_string(i) + ".";
    LayerTensors& t = tensors.target.emplace_back();
    t.input_norm = tensor(prefix + "norm1.weight", TensorRole::kNorm, d, 1);
    t.in = {{tensor(prefix + "qkv.weight", TensorRole::kProjection, in_width(mixer), d)}};
    t.out = tensor(prefix + "out.weight", TensorRole::kProjection, d, inner_width(mixer));
    if (const auto* delta = std::get_if<DeltaSpec>(&mixer)) {
      t.conv = {tensor(prefix + "conv", TensorRole::kConv, d, delta->conv_taps)};
      t.decay = tensor(prefix + "decay", TensorRole::kDecay, delta->value_heads, 1);
      t.write = tensor(prefix + "write", TensorRole::kWrite, delta->value_heads, 1);
    }
    t.post_norm = tensor(prefix + "norm2.weight", TensorRole::kNorm, d, 1);
    t.gate = tensor(prefix + "gate.weight", TensorRole::kMlp, spec.layers[i].d_ff, d);
    t.up = tensor(prefix + "up.weight", TensorRole::kMlp, spec.layers[i].d_ff, d);
    t.down = tensor(prefix + "down.weight", TensorRole::kMlp, d, spec.layers[i].d_ff);
  }
  return tensors;
}

inline constexpr Architecture kMadeUp{"made_up", &made_up_spec, &made_up_tensors};

}  // namespace spel::engine::testing
