// SQLite with errors as spel::Error. Only for the store.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

struct sqlite3;
struct sqlite3_stmt;

namespace spel::memory {

/// One connection. Not thread-safe. SQL knows the function row_checksum(…): CRC32C over its
/// arguments, each with its type and its length.
class Database {
 public:
  enum class Access {
    kReadWrite,  ///< Opens or creates.
    kReadOnly,
    kImmutable,  ///< Nothing beside the file is looked at: for a directory nobody can write to.
  };

  /// An empty path is a database in memory. A path that ends in a link is refused.
  explicit Database(const std::string& path, Access access = Access::kReadWrite);

  void exec(const char* sql);
  [[nodiscard]] std::int64_t integer(const char* sql);
  [[nodiscard]] std::int64_t last_insert_id() const;
  [[nodiscard]] sqlite3* handle() const noexcept { return handle_.get(); }

  /// True once a flush to disk has failed: what the kernel then still holds is anybody's guess, so
  /// nothing more may be promised until a restart has read the file back.
  [[nodiscard]] bool sync_failed() const noexcept { return sync_failed_; }

  /// Throws what SQLite's result code means: kIo for a full disk or a failing device, kCorrupt for
  /// a damaged file, kUnavailable for one that is locked and for a failed flush. The message names
  /// the file and what can be done.
  [[noreturn]] void fail(const char* what);

 private:
  struct Close {
    void operator()(sqlite3* handle) const noexcept;
  };
  std::string path_;
  std::unique_ptr<sqlite3, Close> handle_;
  bool sync_failed_ = false;
};

/// A prepared statement, used again and again. reset() is done by run() and by the end of rows.
class Statement {
 public:
  Statement(Database& database, const char* sql);

  Statement& bind(int place, std::int64_t value);
  Statement& bind(int place, double value);
  Statement& bind(int place, std::string_view text);
  /// The bytes must live until the next reset.
  Statement& bind_blob(int place, std::span<const std::byte> bytes);

  /// True while there is a row to read.
  [[nodiscard]] bool step();
  /// For statements without rows.
  void run();
  void reset() noexcept;

  [[nodiscard]] std::int64_t integer(int column) const;
  [[nodiscard]] double real(int column) const;
  [[nodiscard]] std::string text(int column) const;
  /// Valid until the next step.
  [[nodiscard]] std::span<const std::byte> blob(int column) const;

 private:
  struct Finalize {
    void operator()(sqlite3_stmt* handle) const noexcept;
  };
  void check_bound(int result);

  Database& database_;
  std::unique_ptr<sqlite3_stmt, Finalize> handle_;
};

/// Rolls back unless committed.
class Transaction {
 public:
  explicit Transaction(Database& database);
  ~Transaction();
  Transaction(const Transaction&) = delete;
  Transaction& operator=(const Transaction&) = delete;
  void commit();

 private:
  Database& database_;
  bool open_ = true;
};

}  // namespace spel::memory
