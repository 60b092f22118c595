// Weights ready to run: packed matrices and the small vectors, immutable after load.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/model/config.h"
#include "engine/types.h"
#include "kernels/matrix.h"

namespace spel::engine {

/// What a recurrent layer has beyond its projections. Empty vectors in an attention layer.
struct RecurrentVectors {
  std::vector<float> conv;   ///< [taps][d_model], oldest tap first (files store [d_model][taps]).
  std::vector<float> decay;  ///< [n_heads], already through the sigmoid: a.
  std::vector<float> write;  ///< [n_heads], already through the sigmoid: beta.
};

/// One layer, over the matrix type of its attention projections and of its MLP.
template <typename Projection, typename Mlp>
struct LayerWeights {
  std::vector<float> input_norm;  ///< [d_model]
  Projection qkv;                 ///< [3 * d_model][d_model]
  Projection out;                 ///< [d_model][d_model]
  RecurrentVectors recurrent;
  std::vector<float> post_norm;  ///< [d_model]
  Mlp gate_up;                   ///< [2 * d_ff][d_model]: w1 (gate) above w3 (up).
  Mlp down;                      ///< [d_model][d_ff]
};

using TargetLayer = LayerWeights<kernels::DenseMatrix, kernels::DenseMatrix>;
using DraftLayer = LayerWeights<kernels::Int8Matrix, kernels::TernaryMatrix>;

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

/// A model file, loaded. Shared and never written after load: safe from any thread.
struct ModelWeights {
  ModelConfig config;
  SharedWeights shared;
  std::vector<TargetLayer> target;  ///< [n_layers]
  std::vector<DraftLayer> draft;    ///< [draft_layers.size()], in draft_layers order.
  std::optional<GoldenLogits> golden;
  std::string sha256;            ///< Of the weight files: the model's identity.
  std::uint64_t file_bytes = 0;  ///< Of the weight files on disk.
};

/// How the target's matrices are held in memory. Changes speed, never a bit of the output.
enum class WeightsDtype { kBf16, kF32 };

/// Loads a model directory or a SPELW001 file. kBf16 falls back to kF32, matrix by matrix, where
/// the values are not bf16-exact. Throws Error: kNotFound/kIo if it cannot be read, kCorrupt naming
/// the file, the tensor or header field, what was expected and what was found. Every count is
/// checked against the file's size before anything is allocated.
[[nodiscard]] std::shared_ptr<const ModelWeights> load_model(const std::filesystem::path& path,
                                                             WeightsDtype dtype);

/// Seeded random weights of a shape, bf16-exact, with the draft quantised from the copied layers:
/// for benchmarks and tests, no language in them.
[[nodiscard]] std::shared_ptr<const ModelWeights> random_model(const ModelConfig& config,
                                                               std::uint64_t seed,
                                                               WeightsDtype dtype);

}  // namespace spel::engine
