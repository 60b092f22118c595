// SPELW001: one file of raw f32 tensors. engine/document/FORMAT.md has every byte.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "engine/document/model_source.h"
#include "engine/files/output_file.h"

namespace spel::engine {

/// The exact size of a file of this shape without texts. `config` must be validated.
[[nodiscard]] std::uint64_t spelw_file_bytes(const ModelConfig& config, bool with_golden);

/// Maps and checks a file. Throws Error: kNotFound or kIo if it cannot be read, kCorrupt naming the
/// header field and its byte offset, or the tensor, what was expected and what was found. Switches
/// the header has no room for take ModelConfig's defaults.
[[nodiscard]] std::unique_ptr<ModelSource> open_spelw(const std::filesystem::path& path);

/// The same over bytes in memory, which must outlive the result.
[[nodiscard]] std::unique_ptr<ModelSource> parse_spelw(std::span<const std::byte> bytes,
                                                       const std::string& source_name);

/// Whether a file keeps the texts of the directory it is made from, and with them the model's name
/// and identity. Without them any reader of SPELW001 takes it.
enum class SpelwTexts { kKeep, kLeaveOut };

/// Writes a file, with a footer if there are golden logits (`golden` replaces the source's own).
/// Throws Error(kInvalidArgument) for what the form cannot hold: other than four draft layers,
/// other switches than the defaults, int8 rows that would not quantise back to themselves. On
/// failure nothing is left behind and a file that was there before is untouched.
void write_spelw(const ModelSource& source, const std::optional<GoldenLogits>& golden,
                 const std::filesystem::path& path, SpelwTexts texts = SpelwTexts::kKeep,
                 Existing existing = Existing::kReplace);

}  // namespace spel::engine
