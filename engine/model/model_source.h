// Where a model's values come from: a directory, a SPELW001 file, or a random generator. Loading
// and converting read every form through this one interface.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "engine/model/config.h"
#include "engine/model/quantize.h"
#include "engine/model/tensor_layout.h"
#include "engine/model/weights.h"

namespace spel::engine {

/// What the files of a model directory hold beside the values.
struct DirectoryTexts {
  std::string config;         ///< config.json
  std::string target_header;  ///< The JSON header of model.safetensors, padding included.
  std::string draft_header;   ///< That of draft.safetensors.
};

/// A source that exists is good: its shape has been validated, every size checked and every value
/// found finite before the constructor returned, without copying a weight. Immutable; safe from any
/// thread.
class ModelSource {
 public:
  virtual ~ModelSource() = default;

  [[nodiscard]] virtual const ModelConfig& config() const = 0;
  [[nodiscard]] virtual const std::optional<GoldenLogits>& golden() const = 0;
  /// Hexadecimal identity of the weights.
  [[nodiscard]] virtual const std::string& sha256() const = 0;
  [[nodiscard]] virtual std::uint64_t file_bytes() const = 0;
  /// Those of the directory it is, or was made from; none if it knows of none.
  [[nodiscard]] virtual std::optional<DirectoryTexts> texts() const { return std::nullopt; }

  /// The values of one tensor of tensor_layout(config()), row-major. For a quantised draft matrix
  /// these are latents: values that quantise to what read_int8() or read_ternary() return.
  virtual void read(const TensorSpec& tensor, std::span<float> out) const = 0;
  [[nodiscard]] std::vector<float> read_values(const TensorSpec& tensor) const;

  /// A draft projection. This default quantises read().
  [[nodiscard]] virtual Int8Rows read_int8(const TensorSpec& tensor) const;
  /// A draft MLP matrix. This default quantises read().
  [[nodiscard]] virtual TernaryRows read_ternary(const TensorSpec& tensor) const;
};

/// A model directory or a SPELW001 file, whichever `path` is. Throws as load_model().
[[nodiscard]] std::unique_ptr<ModelSource> open_model(const std::filesystem::path& path);

/// Packs everything a source holds.
[[nodiscard]] std::shared_ptr<const ModelWeights> build_weights(const ModelSource& source,
                                                                WeightsDtype dtype);

}  // namespace spel::engine
