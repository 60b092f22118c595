// From tensors to weights: every architecture's values are packed here, layer by layer.
#pragma once

#include <span>
#include <vector>

#include "engine/arch/tensors.h"
#include "engine/model/weights.h"
#include "engine/quantise/quantize.h"

namespace spel::engine {

/// Where the values of tensors come from. Immutable; safe from any thread.
class TensorReader {
 public:
  virtual ~TensorReader() = default;

  /// The values of one tensor, row-major, as the layers want them: an architecture's reader has
  /// made any change its names call for. For a quantised draft matrix these are latents: values
  /// that quantise to what read_int8() or read_ternary() return.
  virtual void read(const TensorSpec& tensor, std::span<float> out) const = 0;
  [[nodiscard]] std::vector<float> read_values(const TensorSpec& tensor) const;
  /// Some rows of it. This default reads all of them.
  virtual void read_rows(const TensorSpec& tensor, RowBlock block, std::span<float> out) const;

  /// A draft projection. This default quantises read().
  [[nodiscard]] virtual Int8Rows read_int8(const TensorSpec& tensor) const;
  /// A draft MLP matrix. This default quantises read().
  [[nodiscard]] virtual TernaryRows read_ternary(const TensorSpec& tensor) const;
};

[[nodiscard]] SharedWeights pack_shared(const TensorLayout& tensors, const TensorReader& reader,
                                        WeightsDtype dtype);

/// Dense matrices. `layers` has the tensors of each of the spec's. kBf16 falls back to kF32, matrix
/// by matrix, where the values are not bf16-exact.
[[nodiscard]] TransformerWeights pack_dense(const ModelSpec& spec,
                                            std::span<const LayerTensors> layers,
                                            const TensorReader& reader, WeightsDtype dtype);

/// int8 projections and ternary MLPs: the document's draft.
[[nodiscard]] TransformerWeights pack_ternary(const ModelSpec& spec,
                                              std::span<const LayerTensors> layers,
                                              const TensorReader& reader);

}  // namespace spel::engine
