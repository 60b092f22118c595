#include "memory/sqlite.h"

#include <array>
#include <cctype>
#include <cstdio>
#include <new>
#include <sqlite3.h>

#include "config/base/error.h"
#include "memory/checksum.h"

namespace spel::memory {
namespace {

constexpr int kBusyMilliseconds = 2000;

ErrorCode code_of(int result) {
  switch (result & 0xff) {
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
      return ErrorCode::kCorrupt;
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
      return ErrorCode::kUnavailable;
    case SQLITE_FULL:
    case SQLITE_IOERR:
    case SQLITE_CANTOPEN:
    case SQLITE_READONLY:
    case SQLITE_PERM:
      return ErrorCode::kIo;
    default:
      return ErrorCode::kInternal;
  }
}

/// What an operator can do about it.
const char* advice(int result) {
  switch (result & 0xff) {
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
      return "; put a copy in its place, or move it away and write its texts again";
    case SQLITE_FULL:
    case SQLITE_IOERR:
      return "; there is no space left, or the device fails: make room there, or name another "
             "data_dir";
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
      return "; another process is using it";
    case SQLITE_CANTOPEN:
    case SQLITE_READONLY:
    case SQLITE_PERM:
      return "; let this user read and write it and its directory, or name another data_dir";
    default:
      return "";
  }
}

/// "file:/a%20b?immutable=1"
std::string immutable_uri(const std::string& path) {
  std::string uri = "file:";
  for (const char c : path) {
    const auto byte = static_cast<unsigned char>(c);
    if (std::isalnum(byte) != 0 || c == '/' || c == '-' || c == '_' || c == '.') {
      uri += c;
      continue;
    }
    std::array<char, 4> escaped{};
    (void)std::snprintf(escaped.data(), escaped.size(), "%%%02X", static_cast<unsigned>(byte));
    uri += escaped.data();
  }
  return uri + "?immutable=1";
}

template <typename T>
std::uint32_t add_value(const T& value, std::uint32_t sum) {
  return crc32c(std::as_bytes(std::span(&value, 1)), sum);
}

// NOLINTNEXTLINE(*-avoid-c-arrays): SQLite's signature.
void row_checksum(sqlite3_context* context, int count, sqlite3_value** values) {
  std::uint32_t sum = 0;
  for (int i = 0; i < count; ++i) {
    sqlite3_value* value = values[i];
    const int type = sqlite3_value_type(value);
    sum = add_value(type, sum);
    if (type == SQLITE_INTEGER) {
      sum = add_value(sqlite3_value_int64(value), sum);
    } else if (type == SQLITE_FLOAT) {
      sum = add_value(sqlite3_value_double(value), sum);
    } else if (type != SQLITE_NULL) {
      const void* data = sqlite3_value_blob(value);
      const auto size = static_cast<std::size_t>(sqlite3_value_bytes(value));
      sum = crc32c({static_cast<const std::byte*>(data), size}, add_value(size, sum));
    }
  }
  sqlite3_result_int64(context, sum);
}

}  // namespace

void Database::Close::operator()(sqlite3* handle) const noexcept { sqlite3_close_v2(handle); }

Database::Database(const std::string& path, Access access) : path_(path) {
  sqlite3* handle = nullptr;
  int flags = SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_NOFOLLOW | SQLITE_OPEN_READONLY;
  std::string name = path;
  if (access == Access::kReadWrite) {
    flags = SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_NOFOLLOW | SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE;
    name = path.empty() ? ":memory:" : path;
  } else if (access == Access::kImmutable) {
    flags |= SQLITE_OPEN_URI;
    name = immutable_uri(path);
  }
  const int result = sqlite3_open_v2(name.c_str(), &handle, flags, nullptr);
  handle_.reset(handle);
  if (result != SQLITE_OK) {
    fail("it cannot be opened");
  }
  sqlite3_extended_result_codes(handle, 1);
  sqlite3_busy_timeout(handle, kBusyMilliseconds);
  if (sqlite3_create_function_v2(handle, "row_checksum", -1,
                                 SQLITE_UTF8 | SQLITE_DETERMINISTIC | SQLITE_DIRECTONLY, nullptr,
                                 &row_checksum, nullptr, nullptr, nullptr) != SQLITE_OK) {
    fail("it cannot be used");
  }
}

void Database::fail(const char* what) {
  const int result = handle_ ? sqlite3_extended_errcode(handle_.get()) : SQLITE_NOMEM;
  if ((result & 0xff) == SQLITE_NOMEM || result == SQLITE_IOERR_NOMEM) {
    throw std::bad_alloc();
  }
  const bool sync_failed = result == SQLITE_IOERR_FSYNC || result == SQLITE_IOERR_DIR_FSYNC;
  sync_failed_ = sync_failed_ || sync_failed;
  const std::string detail = handle_ ? sqlite3_errmsg(handle_.get()) : "out of memory";
  throw Error(sync_failed ? ErrorCode::kUnavailable : code_of(result),
              "the note store " + (path_.empty() ? "in memory" : path_) + ": " + what + ": " +
                  detail + " (SQLite " + std::to_string(result) + ")" + advice(result));
}

void Database::exec(const char* sql) {
  if (sqlite3_exec(handle_.get(), sql, nullptr, nullptr, nullptr) != SQLITE_OK) {
    fail("a command failed");
  }
}

std::int64_t Database::integer(const char* sql) {
  Statement statement(*this, sql);
  return statement.step() ? statement.integer(0) : 0;
}

std::int64_t Database::last_insert_id() const { return sqlite3_last_insert_rowid(handle_.get()); }

void Statement::Finalize::operator()(sqlite3_stmt* handle) const noexcept {
  sqlite3_finalize(handle);
}

Statement::Statement(Database& database, const char* sql) : database_(database) {
  sqlite3_stmt* handle = nullptr;
  if (sqlite3_prepare_v3(database.handle(), sql, -1, SQLITE_PREPARE_PERSISTENT, &handle, nullptr) !=
      SQLITE_OK) {
    database.fail("a query failed");
  }
  handle_.reset(handle);
}

void Statement::check_bound(int result) {
  if (result != SQLITE_OK) {
    database_.fail("the note store did not take a value");
  }
}

Statement& Statement::bind(int place, std::int64_t value) {
  check_bound(sqlite3_bind_int64(handle_.get(), place, value));
  return *this;
}

Statement& Statement::bind(int place, double value) {
  check_bound(sqlite3_bind_double(handle_.get(), place, value));
  return *this;
}

Statement& Statement::bind(int place, std::string_view text) {
  check_bound(sqlite3_bind_text64(handle_.get(), place, text.data(), text.size(), SQLITE_TRANSIENT,
                                  SQLITE_UTF8));
  return *this;
}

Statement& Statement::bind_blob(int place, std::span<const std::byte> bytes) {
  check_bound(sqlite3_bind_blob64(handle_.get(), place, bytes.data(), bytes.size(), SQLITE_STATIC));
  return *this;
}

bool Statement::step() {
  const int result = sqlite3_step(handle_.get());
  if (result == SQLITE_ROW) {
    return true;
  }
  if (result != SQLITE_DONE) {
    try {
      database_.fail("a read or a write failed");
    } catch (...) {
      reset();
      throw;
    }
  }
  reset();
  return false;
}

void Statement::run() {
  while (step()) {
  }
}

void Statement::reset() noexcept {
  sqlite3_reset(handle_.get());
  sqlite3_clear_bindings(handle_.get());
}

std::int64_t Statement::integer(int column) const {
  return sqlite3_column_int64(handle_.get(), column);
}

double Statement::real(int column) const { return sqlite3_column_double(handle_.get(), column); }

std::string Statement::text(int column) const {
  const auto bytes = blob(column);
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

std::span<const std::byte> Statement::blob(int column) const {
  // The pointer first: asking for the size may convert the value.
  const void* data = sqlite3_column_blob(handle_.get(), column);
  const int size = sqlite3_column_bytes(handle_.get(), column);
  return {static_cast<const std::byte*>(data), static_cast<std::size_t>(size)};
}

Transaction::Transaction(Database& database) : database_(database) {
  if (sqlite3_get_autocommit(database_.handle()) == 0) {
    database_.exec("ROLLBACK");  // The last one's could not be had: there was no memory for it.
  }
  database_.exec("BEGIN IMMEDIATE");
}

Transaction::~Transaction() {
  if (open_) {
    // After some failures SQLite has rolled back by itself; a second time is no harm.
    sqlite3_exec(database_.handle(), "ROLLBACK", nullptr, nullptr, nullptr);
  }
}

void Transaction::commit() {
  database_.exec("COMMIT");
  open_ = false;
}

}  // namespace spel::memory
