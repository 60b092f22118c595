// The tensors of a model, by name and shape: which one fills which place of the layers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace spel::engine {

/// What a tensor is for. In the document's draft, projections are stored as int8 rows and MLP
/// matrices as ternary rows; everything else, and all of the target, is dense.
enum class TensorRole {
  kEmbedding,
  kNorm,
  kProjection,
  kConv,    ///< [rows, cols]
  kConv1d,  ///< [rows, 1, cols]: the same values as torch's layer of that name keeps them.
  kDecay,
  kWrite,
  kGate,  ///< What decay and write rate are computed with: one value a head.
  kMlp,
  kHead,
};

/// From a value of the file to the one the layers want.
enum class TensorValues {
  kAsStored,
  kOnePlus,  ///< 1 + w: a norm's weights kept as their distance from 1.
  kExp,      ///< exp(w): rates kept as logarithms.
};

struct TensorSpec {
  std::string name;  ///< As in the file, e.g. "layers.3.mixer.qkv_proj.weight".
  TensorRole role = TensorRole::kNorm;
  bool in_draft = false;
  std::uint32_t rows = 0;
  std::uint32_t cols = 1;  ///< 1 for a vector of `rows` values.
  TensorValues values_are = TensorValues::kAsStored;

  [[nodiscard]] std::size_t values() const { return std::size_t{rows} * cols; }
  [[nodiscard]] bool is_vector() const {
    return role == TensorRole::kNorm || role == TensorRole::kDecay || role == TensorRole::kWrite ||
           role == TensorRole::kGate;
  }
};

/// Rows [begin, begin + count) of a tensor.
struct RowBlock {
  std::uint32_t begin = 0;
  std::uint32_t count = 0;
};

/// Some rows of a matrix, in the order the layers want them.
struct TensorRows {
  TensorSpec tensor;
  std::vector<RowBlock> blocks = {};  ///< Empty: all.

  [[nodiscard]] std::size_t rows() const;
};

/// The tensors of one layer. Those that a layer of its specification has no use for are absent.
struct LayerTensors {
  TensorSpec input_norm;
  std::vector<TensorRows> in;  ///< Above one another: the mixer's first projection.
  TensorSpec out;
  std::vector<TensorSpec> conv;  ///< Above one another.
  std::optional<TensorSpec> decay;
  std::optional<TensorSpec> write;
  std::optional<TensorSpec> decay_rate;
  std::optional<TensorSpec> step_bias;
  std::optional<TensorSpec> norm;
  std::optional<TensorSpec> q_norm;
  std::optional<TensorSpec> k_norm;
  TensorSpec post_norm;
  TensorSpec gate;
  TensorSpec up;
  TensorSpec down;
};

struct TensorLayout {
  TensorSpec embedding;
  std::vector<LayerTensors> target;
  TensorSpec final_norm;
  std::optional<TensorSpec> lm_head;  ///< None: the embedding.
  std::vector<LayerTensors> draft;
  /// Tensors that may be there and are not read begin with one of these.
  std::vector<std::string> ignored_prefixes;

  /// All of them, each once: embedding, target, norm, head, draft.
  [[nodiscard]] std::vector<TensorSpec> in_file_order() const;
};

/// "tensor draft layers.3.mixer.qkv_proj.weight", for error messages.
[[nodiscard]] std::string describe(const TensorSpec& tensor);

}  // namespace spel::engine
