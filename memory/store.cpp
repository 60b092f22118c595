#include "memory/store.h"

#include <cerrno>
#include <chrono>
#include <cstring>
#include <fcntl.h>
#include <sys/file.h>
#include <system_error>
#include <unistd.h>
#include <utility>

#include "config/base/error.h"
#include "config/base/limits.h"
#include "memory/sqlite.h"

namespace spel::memory {
namespace {

// Sketches and coordinates have tables of their own: reading an index in passes over nothing else.
constexpr const char* kSchema = R"sql(
CREATE TABLE bank(
  id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, model TEXT NOT NULL,
  channels INTEGER NOT NULL, head_dim INTEGER NOT NULL, created INTEGER NOT NULL);
CREATE TABLE note(
  id INTEGER PRIMARY KEY AUTOINCREMENT, bank INTEGER NOT NULL REFERENCES bank(id),
  start INTEGER NOT NULL, score REAL NOT NULL, created INTEGER NOT NULL,
  metadata TEXT NOT NULL, text TEXT NOT NULL, tokens BLOB NOT NULL);
CREATE INDEX note_bank ON note(bank, id);
CREATE TABLE sketch(note INTEGER PRIMARY KEY, bank INTEGER NOT NULL, vector BLOB NOT NULL);
CREATE TABLE coordinates(note INTEGER PRIMARY KEY, bank INTEGER NOT NULL, vector BLOB NOT NULL);
)sql";

template <typename T>
std::span<const std::byte> bytes_of(const std::vector<T>& values) {
  return std::as_bytes(std::span(values));
}

template <typename T>
std::vector<T> values_of(std::span<const std::byte> bytes) {
  std::vector<T> values(bytes.size() / sizeof(T));
  if (!values.empty()) {
    std::memcpy(values.data(), bytes.data(), values.size() * sizeof(T));
  }
  return values;
}

std::int64_t unix_seconds() {
  return std::chrono::duration_cast<std::chrono::seconds>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

/// An advisory lock on a file of its own, held until closed: it goes with the process, however that
/// ends.
class OwnerLock {
 public:
  explicit OwnerLock(const std::filesystem::path& file)
      : fd_(::open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600)) {
    if (fd_ < 0 || ::flock(fd_, LOCK_EX | LOCK_NB) != 0) {
      const bool taken = fd_ >= 0 && errno == EWOULDBLOCK;
      const std::string why = std::strerror(errno);
      if (fd_ >= 0) {
        ::close(fd_);
      }
      throw Error(taken ? ErrorCode::kUnavailable : ErrorCode::kIo,
                  taken ? "the note store " + file.parent_path().string() +
                              " is in use by another process; stop it or name another data_dir"
                        : "cannot lock " + file.string() + ": " + why);
    }
  }
  ~OwnerLock() { ::close(fd_); }
  OwnerLock(const OwnerLock&) = delete;
  OwnerLock& operator=(const OwnerLock&) = delete;

 private:
  int fd_;
};

std::string prepare_directory(const std::filesystem::path& directory, Store::Mode mode) {
  if (directory.empty()) {
    return {};
  }
  std::error_code error;
  if (mode == Store::Mode::kReader) {
    const std::filesystem::path file = directory / "notebank.db";
    if (!std::filesystem::exists(file, error)) {
      throw Error(ErrorCode::kNotFound,
                  "there is no note store " + file.string() +
                      ": name the data_dir of a server that has written notes");
    }
    return file.string();
  }
  std::filesystem::create_directories(directory, error);
  if (error) {
    throw Error(ErrorCode::kIo, "cannot create " + directory.string() + ": " + error.message());
  }
  return (directory / "notebank.db").string();
}

}  // namespace

bool is_valid_bank_name(std::string_view name) {
  constexpr std::string_view kAllowed =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
  return !name.empty() && name.size() <= limits::kBankNameMax &&
         name.find_first_not_of(kAllowed) == std::string_view::npos;
}

class Store::Impl {
 public:
  Impl(const std::filesystem::path& directory, Mode mode) : db(prepare_directory(directory, mode)) {
    if (!directory.empty() && mode == Mode::kOwner) {
      lock = std::make_unique<OwnerLock>(directory / "notebank.lock");
    }
    const std::int64_t version = db.integer("PRAGMA user_version");
    if (version != 0 && version != kBankFormat) {
      throw Error(ErrorCode::kCorrupt,
                  "the note store has format " + std::to_string(version) +
                      "; this program reads format " + std::to_string(kBankFormat) +
                      ": export its texts with the program that wrote it, and write them again");
    }
    db.exec("PRAGMA journal_mode=WAL");
    db.exec("PRAGMA synchronous=FULL");
    if (version == 0) {
      Transaction transaction(db);
      db.exec(kSchema);
      db.exec(("PRAGMA user_version=" + std::to_string(kBankFormat)).c_str());
      transaction.commit();
    }
  }

  /// The row of a bank; nothing if there is none.
  std::optional<std::int64_t> bank_id(std::string_view name) {
    Statement statement(db, "SELECT id FROM bank WHERE name=?1");
    statement.bind(1, name);
    if (!statement.step()) {
      return std::nullopt;
    }
    return statement.integer(0);
  }

  /// Without the figures that take a pass over the notes.
  std::optional<BankInfo> bank_header(std::string_view name) {
    Statement statement(db,
                        "SELECT name, model, channels, head_dim, created FROM bank WHERE name=?1");
    statement.bind(1, name);
    if (!statement.step()) {
      return std::nullopt;
    }
    return read_header(statement);
  }

  static BankInfo read_header(const Statement& row) {
    BankInfo info;
    info.name = row.text(0);
    info.model = row.text(1);
    info.shape.channels = static_cast<std::size_t>(row.integer(2));
    info.shape.head_dim = static_cast<std::size_t>(row.integer(3));
    info.created = row.integer(4);
    return info;
  }

  void check_writable() const {
    if (db.sync_failed()) {
      throw Error(ErrorCode::kUnavailable,
                  "the note store is read-only: flushing it to disk failed; check the disk, then "
                  "restart");
    }
  }

  std::vector<BankInfo> banks(std::string_view name) {
    Statement statement(db,
                        "SELECT b.name, b.model, b.channels, b.head_dim, b.created, COUNT(n.id), "
                        "COALESCE(SUM(LENGTH(n.tokens)+LENGTH(n.text)+LENGTH(n.metadata)),0) "
                        "FROM bank b LEFT JOIN note n ON n.bank=b.id WHERE ?1='' OR b.name=?1 "
                        "GROUP BY b.id ORDER BY b.name");
    statement.bind(1, name);
    std::vector<BankInfo> result;
    while (statement.step()) {
      BankInfo info = read_header(statement);
      info.notes = static_cast<std::uint64_t>(statement.integer(5));
      const std::uint64_t vectors =
          (info.shape.channels * kChannelCoordinates + kAnchors * kSketchCoordinates) *
          sizeof(std::uint16_t);
      info.bytes = static_cast<std::uint64_t>(statement.integer(6)) + info.notes * vectors;
      result.push_back(std::move(info));
    }
    return result;
  }

  void visit_vectors(const char* sql, std::string_view bank, const VectorVisitor& visitor) {
    const auto id = bank_id(bank);
    if (!id) {
      return;
    }
    Statement statement(db, sql);
    statement.bind(1, *id);
    std::vector<std::uint16_t> vector;
    while (statement.step()) {
      vector = values_of<std::uint16_t>(statement.blob(1));
      visitor(statement.integer(0), vector);
    }
  }

  std::unique_ptr<OwnerLock> lock;
  Database db;
};

namespace {

constexpr const char* kNoteColumns =
    "n.id, n.start, n.score, n.created, n.metadata, n.text, n.tokens";

Note read_note(const Statement& row) {
  Note note;
  note.id = row.integer(0);
  note.start = static_cast<std::uint64_t>(row.integer(1));
  note.score = static_cast<float>(row.real(2));
  note.created = row.integer(3);
  note.metadata = row.text(4);
  note.text = row.text(5);
  note.tokens = values_of<TokenId>(row.blob(6));
  return note;
}

void check_bank(const BankInfo& bank, std::string_view model, const ChannelShape& shape) {
  if (bank.model != model || !(bank.shape == shape)) {
    throw Error(ErrorCode::kInvalidArgument, "bank " + bank.name + " was written with model " +
                                                 bank.model + " and this is model " +
                                                 std::string(model) +
                                                 ": their notes do not mix; use another bank");
  }
}

}  // namespace

Store::Store(const std::filesystem::path& directory, Mode mode)
    : impl_(std::make_unique<Impl>(directory, mode)) {}
Store::~Store() = default;

bool Store::is_read_only() const noexcept { return impl_->db.sync_failed(); }

std::vector<BankInfo> Store::banks() { return impl_->banks(""); }

std::vector<BankInfo> Store::bank_headers() {
  Statement statement(impl_->db, "SELECT name, model, channels, head_dim, created FROM bank");
  std::vector<BankInfo> result;
  while (statement.step()) {
    result.push_back(Impl::read_header(statement));
  }
  return result;
}

std::optional<BankInfo> Store::find_bank(std::string_view name) {
  auto found = impl_->banks(name);
  return name.empty() || found.empty() ? std::nullopt : std::optional(std::move(found.front()));
}

bool Store::has_bank(std::string_view name) { return impl_->bank_id(name).has_value(); }

void Store::check(std::string_view bank, std::string_view model, const ChannelShape& shape) {
  if (!is_valid_bank_name(bank)) {
    throw Error(ErrorCode::kInvalidArgument,
                "a bank's name has 1 to 64 letters, digits, \"-\" and \"_\"");
  }
  if (const auto known = impl_->bank_header(bank)) {
    check_bank(*known, model, shape);
  }
}

std::vector<NoteId> Store::append(std::string_view bank, std::string_view model,
                                  const ChannelShape& shape, std::span<const NoteDraft> notes) {
  impl_->check_writable();
  check(bank, model, shape);
  Database& db = impl_->db;
  Transaction transaction(db);
  const std::int64_t now = unix_seconds();
  auto bank_id = impl_->bank_id(bank);
  if (!bank_id) {
    Statement insert(
        db, "INSERT INTO bank(name, model, channels, head_dim, created) VALUES(?1,?2,?3,?4,?5)");
    insert.bind(1, bank).bind(2, model);
    insert.bind(3, static_cast<std::int64_t>(shape.channels));
    insert.bind(4, static_cast<std::int64_t>(shape.head_dim)).bind(5, now).run();
    bank_id = db.last_insert_id();
  }
  Statement insert(db,
                   "INSERT INTO note(bank, start, score, created, metadata, text, tokens) "
                   "VALUES(?1,?2,?3,?4,?5,?6,?7)");
  Statement sketch(db, "INSERT INTO sketch(note, bank, vector) VALUES(?1,?2,?3)");
  Statement coordinates(db, "INSERT INTO coordinates(note, bank, vector) VALUES(?1,?2,?3)");
  std::vector<NoteId> ids;
  for (const NoteDraft& note : notes) {
    insert.bind(1, *bank_id).bind(2, static_cast<std::int64_t>(note.start));
    insert.bind(3, static_cast<double>(note.score)).bind(4, now);
    insert.bind(5, std::string_view(note.metadata)).bind(6, std::string_view(note.text));
    insert.bind_blob(7, bytes_of(note.tokens)).run();
    ids.push_back(db.last_insert_id());
    sketch.bind(1, ids.back()).bind(2, *bank_id).bind_blob(3, bytes_of(note.sketch)).run();
    coordinates.bind(1, ids.back()).bind(2, *bank_id);
    coordinates.bind_blob(3, bytes_of(note.coordinates)).run();
  }
  transaction.commit();
  return ids;
}

std::optional<Note> Store::find_note(std::string_view bank, NoteId id) {
  auto notes = find_notes(bank, {&id, 1});
  return notes.empty() ? std::nullopt : std::optional(std::move(notes.front()));
}

std::vector<Note> Store::find_notes(std::string_view bank, std::span<const NoteId> ids) {
  Statement statement(impl_->db, (std::string("SELECT ") + kNoteColumns +
                                  " FROM note n JOIN bank b ON b.id=n.bank "
                                  "WHERE b.name=?1 AND n.id=?2")
                                     .c_str());
  std::vector<Note> notes;
  for (const NoteId id : ids) {
    statement.bind(1, bank).bind(2, id);
    if (statement.step()) {
      notes.push_back(read_note(statement));
      statement.reset();
    }
  }
  return notes;
}

void Store::visit_notes(std::string_view bank, const NoteVisitor& visitor) {
  const auto id = impl_->bank_id(bank);
  if (!id) {
    return;
  }
  Statement statement(impl_->db, (std::string("SELECT ") + kNoteColumns +
                                  ", c.vector, s.vector FROM note n JOIN sketch s ON s.note=n.id "
                                  "JOIN coordinates c ON c.note=n.id WHERE n.bank=?1 ORDER BY n.id")
                                     .c_str());
  statement.bind(1, *id);
  while (statement.step()) {
    const auto coordinates = values_of<std::uint16_t>(statement.blob(7));
    const auto sketch = values_of<std::uint16_t>(statement.blob(8));
    visitor(read_note(statement), coordinates, sketch);
  }
}

void Store::visit_sketches(std::string_view bank, const VectorVisitor& visitor) {
  impl_->visit_vectors("SELECT note, vector FROM sketch WHERE bank=?1 ORDER BY note", bank,
                       visitor);
}

void Store::visit_coordinates(std::string_view bank, const VectorVisitor& visitor) {
  impl_->visit_vectors("SELECT note, vector FROM coordinates WHERE bank=?1 ORDER BY note", bank,
                       visitor);
}

bool Store::remove_bank(std::string_view name) {
  impl_->check_writable();
  const auto id = impl_->bank_id(name);
  if (!id) {
    return false;
  }
  Transaction transaction(impl_->db);
  for (const char* sql :
       {"DELETE FROM sketch WHERE bank=?1", "DELETE FROM coordinates WHERE bank=?1",
        "DELETE FROM note WHERE bank=?1", "DELETE FROM bank WHERE id=?1"}) {
    Statement(impl_->db, sql).bind(1, *id).run();
  }
  transaction.commit();
  return true;
}

bool Store::remove_note(std::string_view bank, NoteId id) {
  impl_->check_writable();
  if (!find_note(bank, id)) {
    return false;
  }
  Transaction transaction(impl_->db);
  for (const char* sql :
       {"DELETE FROM sketch WHERE note=?1", "DELETE FROM coordinates WHERE note=?1",
        "DELETE FROM note WHERE id=?1"}) {
    Statement(impl_->db, sql).bind(1, id).run();
  }
  transaction.commit();
  return true;
}

}  // namespace spel::memory
