// Where a model's values come from: a directory, a SPELW001 file, or a random generator. Loading
// and converting read every form through this one interface.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/arch/pack.h"
#include "engine/arch/spel_hybrid.h"

namespace spel::engine {

/// What the files of a model directory hold beside the values.
struct DirectoryTexts {
  std::string config;         ///< config.json
  std::string target_header;  ///< The JSON header of model.safetensors, padding included.
  std::string draft_header;   ///< That of draft.safetensors.
};

/// A source that exists is good: its shape has been validated, every size checked and every value
/// found finite before the constructor returned, without copying a weight. It reads the tensors of
/// tensor_layout(config()). Immutable; safe from any thread.
class ModelSource : public TensorReader {
 public:
  [[nodiscard]] virtual const ModelConfig& config() const = 0;
  [[nodiscard]] virtual const std::optional<GoldenLogits>& golden() const = 0;
  /// Hexadecimal identity of the weights.
  [[nodiscard]] virtual const std::string& sha256() const = 0;
  [[nodiscard]] virtual std::uint64_t file_bytes() const = 0;
  /// Those of the directory it is, or was made from; none if it knows of none.
  [[nodiscard]] virtual std::optional<DirectoryTexts> texts() const { return std::nullopt; }
};

}  // namespace spel::engine
