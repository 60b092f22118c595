// API keys, and the file they come from.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "server/log.h"

namespace spel::server {

/// Immutable, safe from any thread. Keys are kept and compared as digests, in constant time and
/// without stopping at the first match.
class KeySet {
 public:
  /// One key a line, blanks around it left out; empty lines and lines that start with '#' are
  /// skipped. Throws Error(kInvalidArgument) naming `source` and the line, never the key: for a key
  /// shorter than kKeyBytesMin, one with a character that no header can carry, more than kKeysMax
  /// keys, or none.
  KeySet(std::string_view text, const std::string& source);

  /// `authorization` is the field's value: "Bearer KEY".
  [[nodiscard]] bool allows(std::string_view authorization) const;

  static constexpr std::size_t kKeyBytesMin = 8;
  static constexpr std::size_t kKeysMax = 1024;

 private:
  using Digest = std::array<std::uint8_t, 32>;
  [[nodiscard]] static Digest digest(std::string_view key);

  std::vector<Digest> digests_;
};

/// The keys in force: those of a file, read again when the file changes. It is looked at when a
/// request comes and at most once in kRecheck. A file that cannot be used then changes nothing: the
/// keys read before stay in force, and the log says so once. Thread-safe.
class ApiKeys {
 public:
  using Report = std::function<void(LogLevel, std::string_view)>;
  using Now = std::function<std::chrono::steady_clock::time_point()>;

  /// No `path`: no keys, everything is allowed. Throws Error, naming the file, for one that cannot
  /// be read, that others may write to, or that KeySet refuses. A pipe is read once.
  ApiKeys(std::string path, Report report, Now now = &std::chrono::steady_clock::now);

  [[nodiscard]] bool required() const noexcept { return !path_.empty(); }
  [[nodiscard]] bool allows(std::string_view authorization);

  static constexpr std::chrono::seconds kRecheck{1};

 private:
  /// What of a file changes when its content does.
  struct Stamp {
    std::uint64_t device = 0;
    std::uint64_t inode = 0;
    std::uint64_t bytes = 0;
    std::int64_t modified_ns = 0;
    std::int64_t changed_ns = 0;
    std::uint32_t mode = 0;
    friend bool operator==(const Stamp&, const Stamp&) = default;
  };
  struct Loaded {
    std::shared_ptr<const KeySet> keys;
    std::optional<Stamp> stamp;  ///< None: not a regular file.
  };

  [[nodiscard]] static std::optional<Stamp> stamp_of(const std::string& path);
  [[nodiscard]] Loaded load() const;
  [[nodiscard]] std::shared_ptr<const KeySet> current();
  void reload();

  const std::string path_;
  const Report report_;
  const Now now_;
  std::mutex mutex_;  ///< Guards what follows.
  std::shared_ptr<const KeySet> keys_;
  std::optional<Stamp> stamp_;  ///< Of the file as last looked at, good or bad.
  bool watched_ = false;
  std::chrono::steady_clock::time_point next_check_;
};

}  // namespace spel::server
