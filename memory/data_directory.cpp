#include "memory/data_directory.h"

#include <array>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstring>
#include <fcntl.h>
#include <string_view>
#include <sys/file.h>
#include <sys/stat.h>
#include <system_error>
#include <unistd.h>

#include "config/base/error.h"

namespace spel::memory {
namespace {

namespace fs = std::filesystem;

constexpr const char* kDatabase = "notebank.db";
constexpr const char* kLock = "notebank.lock";
constexpr mode_t kFileMode = 0600;
constexpr mode_t kDirectoryMode = 0700;
constexpr mode_t kOthers = 0077;
/// The lock file's one line: this and a number.
constexpr std::string_view kLastNote = "last note ";

/// SQLite itself follows no link at the end of a path; this says which file it is, and what to do.
void refuse_links(const fs::path& directory) {
  for (const char* suffix : {"", "-wal", "-shm", "-journal"}) {
    const fs::path file = directory / (std::string(kDatabase) + suffix);
    std::error_code error;
    const fs::file_status status = fs::symlink_status(file, error);
    if (fs::exists(status) && !fs::is_regular_file(status)) {
      throw Error(ErrorCode::kIo,
                  file.string() +
                      (fs::is_symlink(status) ? " is a symbolic link" : " is not a regular file") +
                      ": the note store's files must lie in the data directory itself; move the "
                      "real file there, or name its directory as data_dir");
    }
  }
}

std::string reason(int error) { return std::strerror(error); }

}  // namespace

DataDirectory::DataDirectory(const fs::path& directory, bool owner) {
  if (owner) {
    create(directory);
  }
  std::error_code error;
  // The directory may be reached over links, which is whoever named it's affair; what is in it may
  // not.
  const fs::path real = fs::canonical(directory, error);
  const fs::path named = error ? directory : real;
  database_ = (named / kDatabase).string();
  refuse_links(named);
  if (!owner) {
    if (!fs::exists(database_, error)) {
      throw Error(ErrorCode::kNotFound, "there is no note store " + database_ +
                                            ": name the data_dir of a server that has written "
                                            "notes");
    }
    if (::access(database_.c_str(), W_OK) != 0 || ::access(named.c_str(), W_OK) != 0) {
      read_only_because_ = reason(errno);
    }
    return;
  }
  lock((named / kLock).string());
  create_database();
}

DataDirectory::~DataDirectory() {
  if (lock_ >= 0) {
    ::close(lock_);
  }
}

void DataDirectory::create(const fs::path& directory) {
  std::error_code error;
  if (fs::is_directory(directory, error)) {
    return;
  }
  fs::path leaf = fs::absolute(directory).lexically_normal();
  // "a/b/" has an empty name after its last slash.
  leaf = leaf.has_filename() ? leaf : leaf.parent_path();
  fs::create_directories(leaf.parent_path(), error);
  if (!error && ::mkdir(leaf.c_str(), kDirectoryMode) != 0 && errno != EEXIST) {
    error = {errno, std::generic_category()};
  }
  if (!error && !fs::is_directory(directory, error) && !error) {
    error = std::make_error_code(std::errc::not_a_directory);
  }
  if (error) {
    throw Error(ErrorCode::kIo, "cannot create the data directory " + directory.string() + ": " +
                                    error.message() + "; create it, or name another data_dir");
  }
}

void DataDirectory::lock(const std::string& file) {
  lock_ = ::open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, kFileMode);
  if (lock_ < 0 && (errno == EROFS || errno == EACCES || errno == EPERM) &&
      ::access(database_.c_str(), R_OK) == 0) {
    read_only_because_ = reason(errno);
    lock_ = ::open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    return;
  }
  if (lock_ < 0) {
    throw Error(ErrorCode::kIo,
                "cannot open " + file + ": " +
                    (errno == ELOOP ? std::string("it is a symbolic link") : reason(errno)) +
                    "; the note store needs a directory it can write to, or name another data_dir");
  }
  if (::flock(lock_, LOCK_EX | LOCK_NB) != 0) {
    const int why = errno;
    ::close(lock_);
    lock_ = -1;
    const std::string directory = fs::path(file).parent_path().string();
    throw why == EWOULDBLOCK
        ? Error(ErrorCode::kUnavailable, "the note store " + directory +
                                             " is in use by another process; stop it or name "
                                             "another data_dir")
        : Error(ErrorCode::kIo, "cannot lock " + file + ": " + reason(why));
  }
}

// SQLite gives its log and index the database's permissions.
void DataDirectory::create_database() {
  if (!read_only_because_.empty()) {
    return;
  }
  const int fd = ::open(database_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, kFileMode);
  if (fd < 0) {
    const int why = errno;
    if (::access(database_.c_str(), R_OK) == 0) {
      read_only_because_ = reason(why);
      return;
    }
    throw Error(ErrorCode::kIo, "cannot open the note store " + database_ + ": " + reason(errno) +
                                    "; let this user read and write it, or name another data_dir");
  }
  struct stat status{};
  if (::fstat(fd, &status) == 0 && (status.st_mode & kOthers) != 0) {
    std::array<char, 8> mode{};
    (void)std::snprintf(mode.data(), mode.size(), "%04o", status.st_mode & 07777U);
    warnings_.push_back("the notes in " + database_ + " are open to other users (mode " +
                        mode.data() + "); chmod 600 closes them");
  }
  ::close(fd);
}

bool DataDirectory::has_log() const {
  std::error_code error;
  const auto size = fs::file_size(database_ + "-wal", error);
  return !error && size > 0;
}

std::optional<std::int64_t> DataDirectory::last_note() const {
  std::array<char, 64> line{};
  const ssize_t size = lock_ < 0 ? -1 : ::pread(lock_, line.data(), line.size(), 0);
  const std::string_view text(line.data(), size > 0 ? static_cast<std::size_t>(size) : 0);
  if (!text.starts_with(kLastNote)) {
    return std::nullopt;
  }
  std::int64_t id = 0;
  const auto [end, error] =
      std::from_chars(text.data() + kLastNote.size(), text.data() + text.size(), id);
  return error == std::errc() && end != text.data() + text.size() && *end == '\n'
             ? std::optional(id)
             : std::nullopt;
}

void DataDirectory::remember_last_note(std::int64_t id) noexcept {
  if (lock_ < 0 || !read_only_because_.empty()) {
    return;
  }
  // Of one length whatever the number: an older line leaves nothing behind.
  std::array<char, 64> line{};
  const int size =
      std::snprintf(line.data(), line.size(), "%.*s%020lld\n", static_cast<int>(kLastNote.size()),
                    kLastNote.begin(), static_cast<long long>(id));
  if (size > 0) {
    (void)!::pwrite(lock_, line.data(), static_cast<std::size_t>(size), 0);
  }
}

}  // namespace spel::memory
