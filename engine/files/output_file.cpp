#include "engine/files/output_file.h"

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <string>
#include <sys/stat.h>
#include <system_error>
#include <unistd.h>
#include <utility>

#include "config/base/error.h"

namespace spel::engine {
namespace {

[[noreturn]] void fail(const std::filesystem::path& path, const char* action, int error) {
  throw Error(ErrorCode::kIo, path.string() + ": cannot " + action + ": " + std::strerror(error));
}

std::string template_beside(const std::filesystem::path& path) {
  return path.string() + ".tmp-XXXXXX";
}

/// "models/tiny/" names the same target as "models/tiny", but has no last component to extend.
std::filesystem::path without_trailing_slash(const std::filesystem::path& path) {
  return path.has_filename() ? path : path.parent_path();
}

/// A rename is durable once its directory is.
void flush_parent(const std::filesystem::path& path) {
  const std::filesystem::path parent = path.has_parent_path() ? path.parent_path() : ".";
  const int fd = ::open(parent.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) {
    fail(parent, "open", errno);
  }
  const int result = ::fsync(fd);
  const int error = errno;
  ::close(fd);
  if (result != 0) {
    fail(parent, "flush", error);
  }
}

[[noreturn]] void refuse_existing(const std::filesystem::path& path) {
  throw Error(ErrorCode::kInvalidArgument,
              path.string() + " exists; expected a new name (--force replaces a file)");
}

bool is_taken(const std::filesystem::path& path) {
  std::error_code ignored;  // What cannot be looked at cannot be created either, and says why.
  return std::filesystem::symlink_status(path, ignored).type() !=
         std::filesystem::file_type::not_found;
}

void rename_into_place(const std::filesystem::path& from, const std::filesystem::path& to,
                       Existing existing = Existing::kReplace) {
  std::error_code error;
  if (existing == Existing::kKeep) {
    if (::renameat2(AT_FDCWD, from.c_str(), AT_FDCWD, to.c_str(), RENAME_NOREPLACE) == 0) {
      return;
    }
    // A file system that cannot promise it gets the next best thing.
    if (errno == EEXIST || is_taken(to)) {
      refuse_existing(to);
    }
  }
  std::filesystem::rename(from, to, error);
  if (error) {
    fail(to, "put in place", error.value());
  }
}

}  // namespace

OutputFile::OutputFile(std::filesystem::path path, Existing existing)
    : path_(std::move(path)), existing_(existing) {
  if (existing_ == Existing::kKeep && is_taken(path_)) {
    refuse_existing(path_);
  }
  std::string name = template_beside(path_);
  fd_ = ::mkostemp(name.data(), O_CLOEXEC);
  if (fd_ < 0) {
    fail(path_, "create", errno);
  }
  temporary_ = name;
}

OutputFile::~OutputFile() {
  if (fd_ >= 0) {
    ::close(fd_);
  }
  if (!temporary_.empty()) {
    ::unlink(temporary_.c_str());
  }
}

void OutputFile::write(std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(fd_, bytes.data(), bytes.size());
    if (written < 0) {
      if (errno == EINTR) {
        continue;
      }
      fail(path_, "write", errno);
    }
    bytes = bytes.subspan(static_cast<std::size_t>(written));
  }
}

void OutputFile::write(std::string_view text) { write(std::as_bytes(std::span(text))); }

void OutputFile::commit() {
  constexpr mode_t kMode = 0644;  // mkostemp makes it 0600, too narrow for a model others load.
  if (::fchmod(fd_, kMode) != 0) {
    fail(path_, "set the mode", errno);
  }
  if (::fsync(fd_) != 0) {
    fail(path_, "flush", errno);
  }
  if (::close(std::exchange(fd_, -1)) != 0) {
    fail(path_, "close", errno);
  }
  rename_into_place(temporary_, path_, existing_);
  temporary_.clear();
  flush_parent(path_);
}

OutputDirectory::OutputDirectory(const std::filesystem::path& target)
    : target_(without_trailing_slash(target)) {
  std::error_code error;
  const auto type = std::filesystem::symlink_status(target_, error).type();
  if (type != std::filesystem::file_type::not_found &&
      (type != std::filesystem::file_type::directory ||
       !std::filesystem::is_empty(target_, error))) {
    throw Error(ErrorCode::kInvalidArgument,
                target_.string() + " exists; expected a new name or an empty directory");
  }
  std::string name = template_beside(target_);
  if (::mkdtemp(name.data()) == nullptr) {
    fail(target_, "create", errno);
  }
  temporary_ = name;
}

OutputDirectory::~OutputDirectory() {
  if (!temporary_.empty()) {
    std::error_code ignored;  // Nothing better can be done in a destructor.
    std::filesystem::remove_all(temporary_, ignored);
  }
}

void OutputDirectory::commit() {
  constexpr auto kMode = static_cast<std::filesystem::perms>(0755);
  std::error_code error;
  std::filesystem::permissions(temporary_, kMode, error);
  if (error) {
    fail(target_, "set the mode", error.value());
  }
  rename_into_place(temporary_, target_);
  temporary_.clear();
  flush_parent(target_);
}

}  // namespace spel::engine
