// A file's bytes, read-only, mapped for as long as the object lives.
#pragma once

#include <cstddef>
#include <filesystem>
#include <span>
#include <string_view>

namespace spel::engine {

/// Movable, not copyable. The bytes may be read from any thread. The file must not be cut short
/// while it is mapped (the system would then raise SIGBUS); replacing it by rename is safe.
class MappedFile {
 public:
  MappedFile() = default;
  /// Throws Error: kNotFound if there is no such file, kIo if it cannot be read, kInvalidArgument
  /// if it is not a regular file.
  explicit MappedFile(const std::filesystem::path& path);
  ~MappedFile();
  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&& other) noexcept;

  [[nodiscard]] std::span<const std::byte> bytes() const noexcept { return {data_, size_}; }
  [[nodiscard]] std::string_view text() const noexcept {
    return {reinterpret_cast<const char*>(data_), size_};
  }

 private:
  const std::byte* data_ = nullptr;
  std::size_t size_ = 0;
};

}  // namespace spel::engine
