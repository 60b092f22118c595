// What an architecture is: one file that turns a config.json into a specification and a list of
// tensor names. It sees no kernel, and the transformer sees no name.
#pragma once

#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "engine/arch/tensors.h"
#include "engine/model/spec.h"
#include "engine/model/weights.h"

namespace spel::engine {

struct Architecture {
  std::string_view model_type;  ///< As config.json names it.
  /// Of a config.json's text. Throws Error(kCorrupt) naming `source` and the key, what was found
  /// and what is implemented.
  ModelSpec (*spec)(std::string_view config, const std::string& source);
  /// The tensors of model.safetensors; no draft.
  TensorLayout (*tensors)(const ModelSpec& spec);
};

/// All that this program runs from a directory of config.json and model.safetensors. With a draft,
/// golden logits and digests beside them, a directory is the document's form (engine/document).
[[nodiscard]] std::span<const Architecture> architectures();

/// The one of `known` that reads the directory `path`. Throws Error: kNotFound/kIo for a
/// config.json that cannot be read, kCorrupt for what is not JSON and for a model_type that none of
/// them reads, naming those they read.
[[nodiscard]] const Architecture& architecture_of(const std::filesystem::path& path,
                                                  std::span<const Architecture> known);

/// Loads `path`, a directory that `architecture` reads. Every tensor is checked for its name, type,
/// shape and for values that are not finite; what the architecture does not name is refused. Throws
/// Error: kNotFound/kIo if a file cannot be read, kCorrupt naming file and tensor or key.
[[nodiscard]] std::shared_ptr<const ModelWeights> load_directory(const std::filesystem::path& path,
                                                                 const Architecture& architecture,
                                                                 WeightsDtype dtype);

}  // namespace spel::engine
