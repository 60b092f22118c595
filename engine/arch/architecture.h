// What an architecture is: one file that turns a config.json into a specification and a list of
// tensor names. It sees no kernel, and the transformer sees no name.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "engine/arch/tensors.h"
#include "engine/model/spec.h"
#include "engine/model/weights.h"

namespace spel::engine {

/// The names in a directory's files: one architecture is stored under several.
class TensorNames {
 public:
  virtual ~TensorNames() = default;
  /// None if there is no tensor of this name.
  [[nodiscard]] virtual std::optional<std::span<const std::uint64_t>> shape(
      std::string_view name) const = 0;
  /// Whether any name begins so.
  [[nodiscard]] virtual bool any_begins(std::string_view prefix) const = 0;
};

struct Architecture {
  std::string_view model_type;  ///< As config.json names it.
  /// Of a config.json's text. Throws Error(kCorrupt) naming `source` and the key, what was found
  /// and what is implemented.
  ModelSpec (*spec)(std::string_view config, const std::string& source);
  /// The tensors that fill the layers; no draft. `names` tells which of the forms that the
  /// architecture is stored in this is. Throws Error(kCorrupt) naming a tensor that this build does
  /// not run, mixtures of experts among them.
  TensorLayout (*tensors)(const ModelSpec& spec, const TensorNames& names);
};

/// All that this program runs from a directory of config.json and model.safetensors, or of its
/// shards and their index. With a draft, golden logits and digests beside them, a directory is the
/// document's form (engine/document).
[[nodiscard]] std::span<const Architecture> architectures();

/// The one of `known` that reads the directory `path`. Throws Error: kNotFound/kIo for a
/// config.json that cannot be read, kCorrupt for what is not JSON and for a model_type that none of
/// them reads, naming those they read.
[[nodiscard]] const Architecture& architecture_of(const std::filesystem::path& path,
                                                  std::span<const Architecture> known);

/// Loads `path`, a directory that `architecture` reads; a specification without a name is given the
/// directory's. Every tensor is checked for its name, type, shape and for values that are not
/// finite; what the architecture neither names nor ignores is refused. Throws Error: kNotFound/kIo
/// if a file cannot be read, kCorrupt naming file and tensor or key.
[[nodiscard]] std::shared_ptr<const ModelWeights> load_directory(const std::filesystem::path& path,
                                                                 const Architecture& architecture,
                                                                 WeightsDtype dtype);

}  // namespace spel::engine
