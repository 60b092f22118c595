// Writing a model in either file form.
#pragma once

#include <filesystem>
#include <optional>

#include "engine/model/model_source.h"

namespace spel::engine {

enum class ModelForm { kDirectory, kSpelw };

/// Writes `source` at `path` in the form asked for; see write_model_directory() and write_spelw().
/// The draft is bit for bit the source's in both directions. A model read back from what is written
/// computes the same outputs.
void write_model(const ModelSource& source, const std::optional<GoldenLogits>& golden,
                 const std::filesystem::path& path, ModelForm form);

}  // namespace spel::engine
