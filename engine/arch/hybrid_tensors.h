// What the published hybrids' configurations and tensors have in common. Internal to engine/arch.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "engine/arch/architecture.h"
#include "engine/arch/hf_config.h"

namespace spel::engine {

/// All of a specification but its layers.
[[nodiscard]] ModelSpec hf_model_spec(const HfConfig& config);

/// The delta rule's dimensions and gates; the L2 norm's eps is everybody's 1e-6. `write_scale`: see
/// InputGates.
[[nodiscard]] DeltaSpec hf_delta_spec(const HfConfig& config, float write_scale, float norm_eps);

/// Heads, their dimension and rotation; q and k still to be said. Without num_key_value_heads as
/// many as heads; without head_dim what divides hidden_size.
[[nodiscard]] AttentionSpec hf_attention_spec(const HfConfig& config);

/// Names tensors of one layer, or of none.
class TensorNamer {
 public:
  /// `norms`: how norms' weights are kept.
  TensorNamer(std::string prefix, TensorValues norms) : prefix_(std::move(prefix)), norms_(norms) {}

  [[nodiscard]] TensorSpec norm(std::string_view name, std::size_t values) const;
  /// A norm's weights as they are, whatever the others' are.
  [[nodiscard]] TensorSpec plain_norm(std::string_view name, std::size_t values) const;
  [[nodiscard]] TensorSpec matrix(std::string_view name, std::size_t rows, std::size_t cols,
                                  TensorRole role = TensorRole::kProjection) const;
  [[nodiscard]] std::string name(std::string_view suffix) const {
    return prefix_ + std::string(suffix);
  }

  /// gate, up and down of mlp.*.
  void mlp(LayerTensors& layer, std::size_t d_ff, std::size_t d_model) const;
  /// A_log, dt_bias of `mixer` ("linear_attn."), where gates come from the input.
  void gates(LayerTensors& layer, std::string_view mixer, const DeltaSpec& spec) const;

 private:
  std::string prefix_;
  TensorValues norms_;
};

/// Throws Error(kCorrupt) if `layer` ("model.layers.3.") is a mixture of experts: the router's
/// tensor says so, whatever the configuration does.
void refuse_experts(const TensorNames& names, const std::string& layer);

/// Embedding, final norm and, unless it is the embedding, head. `prefix`: "model.".
[[nodiscard]] TensorLayout hf_tensors(const ModelSpec& spec, const std::string& prefix,
                                      TensorValues norms);

}  // namespace spel::engine
