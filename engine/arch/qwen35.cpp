// Qwen3.5, dense: 0.8B, 2B, 4B, 9B and what is trained from them.
#include "engine/arch/hybrids.h"
#include "engine/arch/qwen_hybrid.h"

namespace spel::engine {
namespace {

std::vector<TensorRows> projections(const TensorNamer& layer, const DeltaSpec& spec,
                                    std::size_t d) {
  return {{layer.matrix("linear_attn.in_proj_qkv.weight", spec.qkv_width(), d)},
          {layer.matrix("linear_attn.in_proj_z.weight", spec.values_width(), d)},
          {layer.matrix("linear_attn.in_proj_b.weight", spec.value_heads, d)},
          {layer.matrix("linear_attn.in_proj_a.weight", spec.value_heads, d)}};
}

}  // namespace

ModelSpec qwen35_spec(std::string_view config, const std::string& source) {
  return qwen_hybrid_spec(config, source);
}

TensorLayout qwen35_tensors(const ModelSpec& spec, const TensorNames& names) {
  // A multimodal checkpoint keeps the language model beside a vision tower, which stays unread.
  const bool multimodal = names.any_begins("model.language_model.");
  TensorLayout layout = qwen_hybrid_tensors(
      spec, names, multimodal ? "model.language_model." : "model.", projections);
  if (multimodal) {
    layout.ignored_prefixes.emplace_back("model.visual.");
  }
  return layout;
}

}  // namespace spel::engine
