// Files that appear whole or not at all.
#pragma once

#include <cstddef>
#include <filesystem>
#include <span>
#include <string_view>

namespace spel::engine {

/// What becomes of a file that is at the place already.
enum class Existing { kReplace, kKeep };

/// Written under a temporary name beside the target; commit() flushes to the disk and renames.
/// Without commit() the destructor removes what was written. Throws Error(kIo) with the system's
/// words. Not thread-safe.
class OutputFile {
 public:
  /// kKeep: throws Error(kInvalidArgument), here or in commit(), if there is anything at the path.
  explicit OutputFile(std::filesystem::path path, Existing existing = Existing::kReplace);
  ~OutputFile();
  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;

  void write(std::span<const std::byte> bytes);
  void write(std::string_view text);
  void write(std::span<const float> values) { write(std::as_bytes(values)); }
  void commit();

 private:
  std::filesystem::path path_;
  Existing existing_;
  std::filesystem::path temporary_;
  int fd_ = -1;
};

/// The same for a directory: fill path(), then commit() gives it its name. The target must not
/// exist, or be an empty directory.
class OutputDirectory {
 public:
  explicit OutputDirectory(const std::filesystem::path& target);
  ~OutputDirectory();
  OutputDirectory(const OutputDirectory&) = delete;
  OutputDirectory& operator=(const OutputDirectory&) = delete;

  [[nodiscard]] const std::filesystem::path& path() const noexcept { return temporary_; }
  void commit();

 private:
  std::filesystem::path target_;
  std::filesystem::path temporary_;
};

}  // namespace spel::engine
