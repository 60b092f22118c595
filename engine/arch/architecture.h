// What an architecture is: one file that turns a config.json into a specification and a list of
// tensor names. It sees no kernel, and the transformer sees no name.
#pragma once

#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "config/json/value.h"
#include "engine/arch/tensors.h"
#include "engine/model/spec.h"
#include "engine/model/weights.h"

namespace spel::engine {

struct Architecture {
  std::string_view model_type;  ///< As config.json names it.
  /// Throws Error(kCorrupt) naming the key, what was found and what is implemented.
  ModelSpec (*spec)(const JsonValue& config);
  /// The tensors of model.safetensors; no draft.
  TensorLayout (*tensors)(const ModelSpec& spec);
};

/// All that this program runs from a directory of config.json and model.safetensors. The document's
/// own form has more files and a reader of its own (engine/document).
[[nodiscard]] std::span<const Architecture> architectures();

/// Whether `path` is a directory that one of `known` reads, and which. nullptr if it is not one.
/// Throws Error for a config.json that cannot be read.
[[nodiscard]] const Architecture* architecture_of(const std::filesystem::path& path,
                                                  std::span<const Architecture> known);

/// config.json of a directory. Throws Error: kNotFound/kIo, kCorrupt for what is not JSON.
[[nodiscard]] JsonValue read_config(const std::filesystem::path& directory);

/// Loads `path`, a directory that `architecture` reads. Every tensor is checked for its name, type,
/// shape and for values that are not finite; what the architecture does not name is refused. Throws
/// Error: kNotFound/kIo if a file cannot be read, kCorrupt naming file and tensor or key.
[[nodiscard]] std::shared_ptr<const ModelWeights> load_directory(const std::filesystem::path& path,
                                                                 const Architecture& architecture,
                                                                 WeightsDtype dtype);

}  // namespace spel::engine
