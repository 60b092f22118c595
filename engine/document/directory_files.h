// The bytes of a model directory's files, made from any source of values. What they hold beside the
// values is text; a model that keeps the texts keeps its name and its identity in another form.
#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <string>

#include "engine/document/model_source.h"

namespace spel::engine {

/// Takes the bytes of a file, front to back.
using ByteSink = std::function<void(std::span<const std::byte>)>;

/// The texts of `source`, or new ones where it has none: a target tensor is then BF16 where that
/// loses nothing, else F32.
[[nodiscard]] DirectoryTexts directory_texts(const ModelSource& source);

/// model.safetensors and draft.safetensors, as `header` lays them out. Throw Error(kCorrupt) naming
/// the tensor unless the header has exactly the tensors of the source's shape, in types that hold
/// their values exactly.
void write_target_file(const ModelSource& source, const std::string& header, const ByteSink& sink);
void write_draft_file(const ModelSource& source, const std::string& header, const ByteSink& sink);

/// The identity of the directory that has these texts and the source's values, in hexadecimal.
/// Throws as the two above.
[[nodiscard]] std::string directory_identity(const ModelSource& source,
                                             const DirectoryTexts& texts);

}  // namespace spel::engine
