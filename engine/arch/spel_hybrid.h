// The document's architecture: Gated DeltaNet with an attention layer every attn_period, and a
// draft of copied layers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "engine/arch/pack.h"
#include "engine/arch/tensors.h"
#include "engine/model/spec.h"

namespace spel::engine {

/// config.json's model_type of the document's architecture.
inline constexpr std::string_view kSpelHybrid = "spel_hybrid";

/// static: one decay and one write rate per head; input: computed from the layer's input.
enum class GateKind { kStatic, kInput };

/// Immutable once validated. Field names follow config.json of a model directory.
struct ModelConfig {
  std::string name = "spel";
  std::uint32_t d_model = 384;
  std::uint32_t n_layers = 12;
  std::uint32_t n_heads = 6;
  std::uint32_t head_dim = 64;
  std::uint32_t d_ff = 1024;
  std::uint32_t vocab_size = 128;
  std::uint32_t max_seq = 4096;
  std::uint32_t attn_period = 4;  ///< Layer i is attention when i % attn_period == attn_period - 1.
  std::uint32_t conv_taps = 3;
  float attn_logit_scale = 16.0F;
  double rope_theta = 10000.0;
  float rms_norm_eps = 1e-5F;
  float l2_norm_eps = 1e-6F;
  ConvActivation conv_activation = ConvActivation::kNone;
  GateKind gates = GateKind::kStatic;
  ReadOrder read_order = ReadOrder::kBeforeDecay;
  bool tie_word_embeddings = false;
  std::string tokenizer = "ascii";
  std::int32_t bos_token_id = -1;  ///< -1: none.
  std::int32_t eos_token_id = -1;  ///< -1: none.
  std::vector<std::uint32_t> draft_layers = {0, 3, 6, 9};

  [[nodiscard]] bool is_attention(std::size_t layer) const {
    return layer % attn_period == attn_period - 1;
  }
  [[nodiscard]] std::size_t attn_width() const { return std::size_t{n_heads} * head_dim; }

  /// Parameters of the target; of the draft without what it shares (embedding, norm, head).
  [[nodiscard]] std::uint64_t target_parameters() const;
  [[nodiscard]] std::uint64_t draft_parameters() const;
  /// Bytes of the draft's packed matrices and their row scales.
  [[nodiscard]] std::uint64_t draft_packed_bytes() const;

  /// Throws Error(kCorrupt) naming the field, its value and what is allowed, for shapes outside
  /// limits.h, shapes that do not fit together (n_heads * head_dim != d_model, odd head_dim, draft
  /// layers out of range or not ascending) and switches this build does not implement.
  void validate() const;

  /// The document's two shapes.
  [[nodiscard]] static ModelConfig default_shape();
  [[nodiscard]] static ModelConfig scaled_shape();
};

/// `config` must be validated, here and below.
[[nodiscard]] ModelSpec spel_hybrid_spec(const ModelConfig& config);

/// Of the layers that the draft has.
[[nodiscard]] ModelSpec spel_hybrid_draft_spec(const ModelConfig& config);

/// Of a model without a draft.
[[nodiscard]] TensorLayout spel_hybrid_tensors(const ModelSpec& spec);

/// Target and draft, in the order SPELW001 stores them.
[[nodiscard]] TensorLayout tensor_layout(const ModelConfig& config);

/// Target and draft of the tensors above; no golden logits and no identity.
[[nodiscard]] ModelWeights pack_spel_hybrid(const ModelConfig& config, const TensorReader& reader,
                                            WeightsDtype dtype);

}  // namespace spel::engine
