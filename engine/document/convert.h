// Writing a model in either file form.
#pragma once

#include <filesystem>
#include <optional>

#include "engine/document/model_source.h"
#include "engine/document/spelw.h"
#include "engine/files/output_file.h"

namespace spel::engine {

enum class ModelForm { kDirectory, kSpelw };

/// Writes `source` at `path` in the form asked for; see write_model_directory() and write_spelw().
/// Name and identity go with it, both ways, where the texts of a directory are kept.
/// The draft is bit for bit the source's in both directions. A model read back from what is written
/// computes the same outputs.
void write_model(const ModelSource& source, const std::optional<GoldenLogits>& golden,
                 const std::filesystem::path& path, ModelForm form,
                 SpelwTexts texts = SpelwTexts::kKeep, Existing existing = Existing::kReplace);

}  // namespace spel::engine
