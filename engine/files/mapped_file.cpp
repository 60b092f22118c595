#include "engine/files/mapped_file.h"

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <string>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <utility>

#include "config/base/error.h"

namespace spel::engine {
namespace {

class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  ~Descriptor() {
    if (fd_ >= 0) {
      ::close(fd_);
    }
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  [[nodiscard]] int get() const { return fd_; }

 private:
  int fd_;
};

[[noreturn]] void fail(const std::filesystem::path& path, const char* action, int error) {
  throw Error(error == ENOENT ? ErrorCode::kNotFound : ErrorCode::kIo,
              path.string() + ": cannot " + action + ": " + std::strerror(error));
}

}  // namespace

MappedFile::MappedFile(const std::filesystem::path& path) {
  // O_NONBLOCK so that a named pipe is refused below instead of waiting for a writer.
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (file.get() < 0) {
    fail(path, "open", errno);
  }
  struct stat info{};
  if (::fstat(file.get(), &info) != 0) {
    fail(path, "stat", errno);
  }
  if (!S_ISREG(info.st_mode)) {
    throw Error(ErrorCode::kInvalidArgument, path.string() + ": expected a regular file");
  }
  size_ = static_cast<std::size_t>(info.st_size);
  if (size_ == 0) {
    return;  // mmap refuses an empty range; an empty span says the same.
  }
  void* data = ::mmap(nullptr, size_, PROT_READ, MAP_PRIVATE, file.get(), 0);
  if (data == MAP_FAILED) {
    fail(path, "map", errno);
  }
  data_ = static_cast<const std::byte*>(data);
}

MappedFile::~MappedFile() {
  if (data_ != nullptr) {
    ::munmap(const_cast<std::byte*>(data_), size_);
  }
}

MappedFile::MappedFile(MappedFile&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}

MappedFile& MappedFile::operator=(MappedFile&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
  return *this;
}

}  // namespace spel::engine
