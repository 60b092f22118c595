// Weights ready to run: packed matrices and the small vectors, immutable after load.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "engine/model/spec.h"
#include "engine/types.h"
#include "kernels/matrix.h"

namespace spel::engine {

struct DeltaWeights {
  kernels::Matrix in;       ///< [in_width][d_model]
  kernels::Matrix out;      ///< [d_model][inner_width]
  std::vector<float> conv;  ///< [taps][conv_width], oldest tap first (files: [conv_width][taps]).
  // Without input gates.
  std::vector<float> decay;  ///< [value_heads], already through the sigmoid: a.
  std::vector<float> write;  ///< [value_heads], already through the sigmoid: beta.
  // With them.
  std::vector<float> decay_rate;  ///< [value_heads]: exp(A_log).
  std::vector<float> step_bias;   ///< [value_heads]
  std::vector<float> norm;        ///< [value_dim], of a gated norm.
};

struct AttentionWeights {
  kernels::Matrix in;   ///< [in_width][d_model]
  kernels::Matrix out;  ///< [d_model][inner_width]
  // Unless q and k are only brought to length 1: of one head, or as wide as all.
  std::vector<float> q_norm;
  std::vector<float> k_norm;
};

struct LayerWeights {
  std::vector<float> input_norm;                       ///< [d_model], the mixer's.
  std::variant<DeltaWeights, AttentionWeights> mixer;  ///< As the spec's.
  std::vector<float> post_norm;                        ///< [d_model], the MLP's.
  kernels::Matrix gate_up;                             ///< [2 * d_ff][d_model]: gate above up.
  kernels::Matrix down;                                ///< [d_model][d_ff]
};

/// A stack of layers: the target's, or a draft's over the same embedding and head.
struct TransformerWeights {
  ModelSpec spec;
  std::vector<LayerWeights> layers;  ///< As many as the spec's.
};

/// Every matrix of the stack, in the order a token meets them.
template <typename Visit>
void for_each_matrix(const TransformerWeights& stack, const Visit& visit) {
  for (const LayerWeights& layer : stack.layers) {
    std::visit(
        [&](const auto& mixer) {
          visit(mixer.in);
          visit(mixer.out);
        },
        layer.mixer);
    visit(layer.gate_up);
    visit(layer.down);
  }
}

/// What target and draft share.
struct SharedWeights {
  std::vector<float> embedding;   ///< [vocab][d_model]
  std::vector<float> final_norm;  ///< [d_model]
  kernels::DenseMatrix lm_head;   ///< [vocab][d_model]
};

/// 16 tokens and the logits a correct forward pass gives for them from a reset state.
struct GoldenLogits {
  std::vector<TokenId> tokens;       ///< [16]
  std::vector<float> target_logits;  ///< [16][vocab]
  std::vector<float> draft_logits;   ///< [16][vocab]
};

/// A model, loaded. Shared and never written after load: safe from any thread.
struct ModelWeights {
  SharedWeights shared;
  TransformerWeights target;
  std::optional<TransformerWeights> draft;
  std::optional<GoldenLogits> golden;
  std::string sha256;            ///< Of the weight files: the model's identity.
  std::uint64_t file_bytes = 0;  ///< Of the weight files on disk.
};

/// How the target's matrices are held in memory. Changes speed, never a bit of the output.
enum class WeightsDtype { kBf16, kF32 };

}  // namespace spel::engine
