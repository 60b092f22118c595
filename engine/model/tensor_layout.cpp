#include "engine/model/tensor_layout.h"

namespace spel::engine {
namespace {

LayerTensors layer_tensors(const ModelConfig& c, std::size_t layer, bool in_draft) {
  const std::string prefix = "layers." + std::to_string(layer) + ".";
  const auto tensor = [&](const char* name, TensorRole role, std::uint32_t rows,
                          std::uint32_t cols) {
    return TensorSpec{prefix + name, role, in_draft, rows, cols};
  };
  LayerTensors t;
  t.input_norm = tensor("input_norm.weight", TensorRole::kNorm, c.d_model, 1);
  t.qkv = tensor("mixer.qkv_proj.weight", TensorRole::kProjection, 3 * c.d_model, c.d_model);
  t.out = tensor("mixer.out_proj.weight", TensorRole::kProjection, c.d_model, c.d_model);
  if (!c.is_attention(layer)) {
    t.recurrent = {tensor("mixer.conv.weight", TensorRole::kConv, c.d_model, c.conv_taps),
                   tensor("mixer.decay", TensorRole::kDecay, c.n_heads, 1),
                   tensor("mixer.write", TensorRole::kWrite, c.n_heads, 1)};
  }
  t.post_norm = tensor("post_norm.weight", TensorRole::kNorm, c.d_model, 1);
  t.gate = tensor("mlp.gate_proj.weight", TensorRole::kMlp, c.d_ff, c.d_model);
  t.up = tensor("mlp.up_proj.weight", TensorRole::kMlp, c.d_ff, c.d_model);
  t.down = tensor("mlp.down_proj.weight", TensorRole::kMlp, c.d_model, c.d_ff);
  return t;
}

void append(std::vector<TensorSpec>& all, const LayerTensors& layer) {
  all.insert(all.end(), {layer.input_norm, layer.qkv, layer.out});
  all.insert(all.end(), layer.recurrent.begin(), layer.recurrent.end());
  all.insert(all.end(), {layer.post_norm, layer.gate, layer.up, layer.down});
}

}  // namespace

TensorLayout tensor_layout(const ModelConfig& config) {
  TensorLayout layout;
  layout.embedding = {"embed_tokens.weight", TensorRole::kEmbedding, false, config.vocab_size,
                      config.d_model};
  layout.final_norm = {"norm.weight", TensorRole::kNorm, false, config.d_model, 1};
  layout.lm_head = {"lm_head.weight", TensorRole::kHead, false, config.vocab_size, config.d_model};
  for (std::size_t layer = 0; layer < config.n_layers; ++layer) {
    layout.target.push_back(layer_tensors(config, layer, false));
  }
  for (const std::uint32_t layer : config.draft_layers) {
    layout.draft.push_back(layer_tensors(config, layer, true));
  }
  return layout;
}

std::vector<TensorSpec> TensorLayout::in_file_order() const {
  std::vector<TensorSpec> all = {embedding};
  for (const LayerTensors& layer : target) {
    append(all, layer);
  }
  all.push_back(final_norm);
  all.push_back(lm_head);
  for (const LayerTensors& layer : draft) {
    append(all, layer);
  }
  return all;
}

std::string describe(const TensorSpec& tensor) {
  return (tensor.in_draft ? "tensor draft " : "tensor ") + tensor.name;
}

}  // namespace spel::engine
