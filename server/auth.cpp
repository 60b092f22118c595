#include "server/auth.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <sys/stat.h>
#include <unistd.h>
#include <utility>

#include "config/base/error.h"
#include "server/beast.h"

namespace spel::server {
namespace {

constexpr std::size_t kFileBytesMax = std::size_t{1} << 20;

std::string_view trim(std::string_view text) {
  constexpr std::string_view kBlanks = " \t\r";
  const std::size_t first = text.find_first_not_of(kBlanks);
  return first == std::string_view::npos
             ? std::string_view()
             : text.substr(first, text.find_last_not_of(kBlanks) - first + 1);
}

/// A descriptor, closed at the end.
class OpenFile {
 public:
  OpenFile(const std::string& path, int flags)
      : fd_(::open(path.c_str(), O_RDONLY | O_CLOEXEC | flags)) {
    if (fd_ < 0) {
      fail(path);
    }
  }
  ~OpenFile() { ::close(fd_); }
  OpenFile(const OpenFile&) = delete;
  OpenFile& operator=(const OpenFile&) = delete;

  [[nodiscard]] struct stat status(const std::string& path) const {
    struct stat status{};
    if (::fstat(fd_, &status) != 0) {
      fail(path);
    }
    return status;
  }

  [[nodiscard]] std::string read(const std::string& path) const {
    std::string text;
    std::array<char, 4096> part{};
    while (true) {
      // NOLINTNEXTLINE(clang-analyzer-unix.BlockInCriticalSection): a few bytes all keys wait for.
      const ssize_t size = ::read(fd_, part.data(), part.size());
      if (size < 0 && errno == EINTR) {
        continue;
      }
      if (size < 0) {
        fail(path);
      }
      if (size == 0) {
        return text;
      }
      text.append(part.data(), static_cast<std::size_t>(size));
      if (text.size() > kFileBytesMax) {
        throw Error(ErrorCode::kInvalidArgument, "the API key file " + path + " is larger than " +
                                                     std::to_string(kFileBytesMax) + " bytes");
      }
    }
  }

 private:
  [[noreturn]] static void fail(const std::string& path) {
    throw Error(ErrorCode::kIo,
                "cannot read the API key file " + path + ": " + std::strerror(errno));
  }

  int fd_;
};

std::int64_t nanoseconds(const timespec& time) {
  return static_cast<std::int64_t>(time.tv_sec) * 1'000'000'000 + time.tv_nsec;
}

}  // namespace

KeySet::KeySet(std::string_view text, const std::string& source) {
  const auto refuse = [&](std::size_t line, const std::string& why) {
    throw Error(ErrorCode::kInvalidArgument,
                source + ", line " + std::to_string(line) + ": " + why);
  };
  for (std::size_t line = 1; !text.empty(); ++line) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    const std::string_view key = trim(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
    if (key.empty() || key.front() == '#') {
      continue;
    }
    if (std::any_of(key.begin(), key.end(), [](char c) { return c <= ' ' || c > '~'; })) {
      refuse(line,
             "an API key holds a blank or a character outside ASCII, which no request can send");
    }
    if (key.size() < kKeyBytesMin) {
      refuse(line, "an API key is shorter than " + std::to_string(kKeyBytesMin) + " characters");
    }
    if (digests_.size() == kKeysMax) {
      refuse(line, "more than " + std::to_string(kKeysMax) + " API keys");
    }
    digests_.push_back(digest(key));
  }
  if (digests_.empty()) {
    throw Error(ErrorCode::kInvalidArgument, "the API key file " + source + " has no key in it");
  }
}

KeySet::Digest KeySet::digest(std::string_view key) {
  Digest result{};
  unsigned size = 0;
  if (EVP_Digest(key.data(), key.size(), result.data(), &size, EVP_sha256(), nullptr) != 1) {
    throw Error(ErrorCode::kInternal, "SHA-256 is not available");
  }
  return result;
}

bool KeySet::allows(std::string_view authorization) const {
  constexpr std::string_view kScheme = "Bearer ";
  if (authorization.size() <= kScheme.size() ||
      !boost::beast::iequals(authorization.substr(0, kScheme.size()), kScheme)) {
    return false;
  }
  authorization.remove_prefix(kScheme.size());
  const Digest given = digest(authorization);
  bool found = false;
  for (const Digest& known : digests_) {
    const bool equal = CRYPTO_memcmp(given.data(), known.data(), given.size()) == 0;
    found = found || equal;
  }
  return found;
}

ApiKeys::ApiKeys(std::string path, Report report, Now now)
    : path_(std::move(path)), report_(std::move(report)), now_(std::move(now)) {
  if (required()) {
    Loaded loaded = load();
    keys_ = std::move(loaded.keys);
    stamp_ = loaded.stamp;
    watched_ = stamp_.has_value();
    next_check_ = now_() + kRecheck;
  }
}

std::optional<ApiKeys::Stamp> ApiKeys::stamp_of(const std::string& path) {
  struct stat status{};
  if (::stat(path.c_str(), &status) != 0) {
    return std::nullopt;
  }
  return Stamp{status.st_dev,
               status.st_ino,
               static_cast<std::uint64_t>(status.st_size),
               nanoseconds(status.st_mtim),
               nanoseconds(status.st_ctim),
               status.st_mode};
}

ApiKeys::Loaded ApiKeys::load() const {
  // Taken first: a file written to while it is read has another one afterwards, and is read again.
  const std::optional<Stamp> stamp = stamp_of(path_);
  // Requests wait meanwhile: a pipe put in the file's place must not hold them up.
  const OpenFile file(path_, watched_ ? O_NONBLOCK : 0);
  const struct stat status = file.status(path_);
  const bool regular = S_ISREG(status.st_mode);
  if (watched_ && !regular) {
    throw Error(ErrorCode::kInvalidArgument,
                "the API key file " + path_ + " is not a file any more");
  }
  if (regular && (status.st_mode & S_IWOTH) != 0) {
    throw Error(ErrorCode::kInvalidArgument, "the API key file " + path_ +
                                                 " can be written to by everybody on this machine; "
                                                 "chmod 600 " +
                                                 path_);
  }
  Loaded loaded{std::make_shared<const KeySet>(file.read(path_), path_),
                regular ? stamp : std::nullopt};
  if (regular && (status.st_mode & S_IROTH) != 0) {
    report_(LogLevel::kWarning, "the API key file " + path_ +
                                    " can be read by everybody on this machine; chmod 600 " +
                                    path_ + " keeps it to you");
  }
  return loaded;
}

void ApiKeys::reload() {
  const std::optional<Stamp> stamp = stamp_of(path_);
  if (stamp == stamp_) {
    return;
  }
  stamp_ = stamp;
  try {
    Loaded loaded = load();
    keys_ = std::move(loaded.keys);
    stamp_ = loaded.stamp;
    report_(LogLevel::kInfo, "the API keys of " + path_ + " were read again");
  } catch (const std::exception& error) {
    report_(LogLevel::kError,
            std::string(error.what()) + "; the API keys read before stay in force");
  }
}

std::shared_ptr<const KeySet> ApiKeys::current() {
  const std::lock_guard lock(mutex_);
  if (watched_ && now_() >= next_check_) {
    next_check_ = now_() + kRecheck;
    reload();
  }
  return keys_;
}

bool ApiKeys::allows(std::string_view authorization) {
  return !required() || current()->allows(authorization);
}

}  // namespace spel::server
