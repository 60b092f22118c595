// The safetensors files of a directory: one, or shards with an index.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/arch/architecture.h"
#include "engine/files/mapped_file.h"
#include "engine/files/safetensors.h"

namespace spel::engine {

/// Mapped for as long as this lives. Immutable; safe from any thread.
class TensorFiles final : public TensorNames {
 public:
  /// Takes model.safetensors, or what model.safetensors.index.json lists where that is there.
  /// Throws Error: kNotFound/kIo if a file cannot be read, kCorrupt as SafetensorsView does, for a
  /// shard whose name leaves the directory, for a tensor that is not in the shard the index says
  /// and for one that is in two.
  explicit TensorFiles(const std::filesystem::path& directory);

  [[nodiscard]] std::span<const SafetensorsView> files() const noexcept { return views_; }
  /// nullptr if there is no tensor of that name.
  [[nodiscard]] const TensorView* find(std::string_view name) const;
  [[nodiscard]] std::optional<std::span<const std::uint64_t>> shape(
      std::string_view name) const override;
  [[nodiscard]] bool any_begins(std::string_view prefix) const override;

  /// Of all files.
  [[nodiscard]] std::uint64_t bytes() const noexcept;
  /// SHA-256 of each, in hexadecimal, one after another in the order of files().
  [[nodiscard]] std::string digests() const;

 private:
  void open(const std::filesystem::path& file);

  std::vector<MappedFile> mapped_;
  std::vector<SafetensorsView> views_;
};

}  // namespace spel::engine
