// A model directory: config.json, model.safetensors, draft.safetensors and, optionally,
// golden.safetensors and SHA256SUMS. engine/document/FORMAT.md has every tensor.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "engine/document/model_source.h"

namespace spel::engine {

/// The bytes of a directory's files, which must outlive what is made of them.
struct ModelDirectoryBytes {
  std::span<const std::byte> config;
  std::span<const std::byte> target;
  std::span<const std::byte> draft;
  std::optional<std::span<const std::byte>> golden;
  std::optional<std::span<const std::byte>> sums;
  std::string prefix;  ///< Put before file names in errors, e.g. "models/spel-21m/".
};

/// Maps and checks the files. If SHA256SUMS is there, it must list every file read and match.
/// Throws Error: kNotFound or kIo if a file cannot be read, kCorrupt naming the file and the tensor
/// or key, what was expected and what was found.
[[nodiscard]] std::unique_ptr<ModelSource> open_model_directory(const std::filesystem::path& path);

/// The same over bytes in memory.
[[nodiscard]] std::unique_ptr<ModelSource> parse_model_directory(const ModelDirectoryBytes& files);

/// Writes a directory that must not exist yet, with SHA256SUMS: byte for byte the one `source` was
/// made from, if it has the texts of one; else a target matrix is stored as BF16 where that loses
/// nothing, else as F32. `golden` replaces the source's own. On failure nothing is
/// left behind.
void write_model_directory(const ModelSource& source, const std::optional<GoldenLogits>& golden,
                           const std::filesystem::path& path);

}  // namespace spel::engine
