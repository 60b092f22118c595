// The directory a store lives in: its files, who has it, and what the last owner left.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace spel::memory {

/// Not thread-safe. Holds the owner's lock for as long as it lives; that goes with the process,
/// however it ends.
class DataDirectory {
 public:
  /// An owner creates the directory (0700) and an empty database (0600) if there is none, and is
  /// refused while another has it (kUnavailable); whoever only reads creates nothing, and is told
  /// kNotFound. Throws kIo, naming the path and what to do, for what cannot be created and for a
  /// file of the store that is a link or no file at all: what is written here stays here.
  DataDirectory(const std::filesystem::path& directory, bool owner);
  ~DataDirectory();
  DataDirectory(const DataDirectory&) = delete;
  DataDirectory& operator=(const DataDirectory&) = delete;

  [[nodiscard]] const std::string& database() const noexcept { return database_; }
  /// Why nothing can be written here, by the owner either; empty if it can.
  [[nodiscard]] const std::string& read_only_because() const noexcept { return read_only_because_; }
  /// True if what is in the log beside the database has not been merged into it.
  [[nodiscard]] bool has_log() const;
  /// What an operator should know.
  [[nodiscard]] const std::vector<std::string>& warnings() const noexcept { return warnings_; }

  /// The highest id of a note any owner has written; nothing if that is not known. Never more than
  /// is durable: a database that knows less has lost notes.
  [[nodiscard]] std::optional<std::int64_t> last_note() const;
  /// Kept beside the database, to be compared at the next start. Not worth an error: without it
  /// only the comparison is lost.
  void remember_last_note(std::int64_t id) noexcept;

 private:
  void create(const std::filesystem::path& directory);
  void lock(const std::string& file);
  void create_database();

  std::string database_;
  std::string read_only_because_;
  std::vector<std::string> warnings_;
  int lock_ = -1;
};

}  // namespace spel::memory
