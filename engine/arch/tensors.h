// The tensors of a model, by name and shape: which one fills which place of the layers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace spel::engine {

/// What a tensor is for. In the draft, projections are stored as int8 rows and MLP matrices as
/// ternary rows; everything else, and all of the target, is dense.
enum class TensorRole { kEmbedding, kNorm, kProjection, kConv, kDecay, kWrite, kMlp, kHead };

struct TensorSpec {
  std::string name;  ///< As in model.safetensors, e.g. "layers.3.mixer.qkv_proj.weight".
  TensorRole role = TensorRole::kNorm;
  bool in_draft = false;
  std::uint32_t rows = 0;
  std::uint32_t cols = 1;  ///< 1 for a vector of `rows` values.

  [[nodiscard]] std::size_t values() const { return std::size_t{rows} * cols; }
  [[nodiscard]] bool is_vector() const {
    return role == TensorRole::kNorm || role == TensorRole::kDecay || role == TensorRole::kWrite;
  }
};

/// The tensors of one layer, in file order.
struct LayerTensors {
  TensorSpec input_norm;
  TensorSpec qkv;
  TensorSpec out;
  std::vector<TensorSpec> recurrent;  ///< conv, decay, write; empty in an attention layer.
  TensorSpec post_norm;
  TensorSpec gate;
  TensorSpec up;
  TensorSpec down;
};

struct TensorLayout {
  TensorSpec embedding;
  std::vector<LayerTensors> target;
  TensorSpec final_norm;
  TensorSpec lm_head;
  std::vector<LayerTensors> draft;

  /// All of them: embedding, target, norm, head, draft.
  [[nodiscard]] std::vector<TensorSpec> in_file_order() const;
};

/// "tensor draft layers.3.mixer.qkv_proj.weight", for error messages.
[[nodiscard]] std::string describe(const TensorSpec& tensor);

}  // namespace spel::engine
