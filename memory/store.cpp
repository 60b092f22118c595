#include "memory/store.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "config/base/error.h"
#include "config/base/limits.h"
#include "memory/data_directory.h"
#include "memory/plausible.h"
#include "memory/sqlite.h"
#include "memory/store_tables.h"

namespace spel::memory {
namespace {

std::int64_t unix_seconds() {
  return std::chrono::duration_cast<std::chrono::seconds>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

/// Where nothing can be written, SQLite needs the index beside the log to be there already. If it
/// is not and the log holds nothing, the file alone is all there is.
Database open_read_only(const DataDirectory& directory) {
  try {
    Database db(directory.database(), Database::Access::kReadOnly);
    (void)db.integer("SELECT COUNT(*) FROM sqlite_master");
    return db;
  } catch (const Error& error) {
    if (error.code() != ErrorCode::kIo) {
      throw;
    }
  }
  if (directory.has_log()) {
    throw Error(ErrorCode::kIo,
                "the note store " + directory.database() +
                    " has notes in its -wal file that can only be read where it can be written "
                    "to: copy the directory to such a place, and name that as data_dir");
  }
  return Database(directory.database(), Database::Access::kImmutable);
}

void check_bank(const BankInfo& bank, std::string_view model, const ChannelShape& shape) {
  if (bank.model != model || !(bank.shape == shape)) {
    throw Error(ErrorCode::kInvalidArgument, "bank " + bank.name + " was written with model " +
                                                 bank.model + " and this is model " +
                                                 std::string(model) +
                                                 ": their notes do not mix; use another bank");
  }
}

/// "SELECT " and its parts, for the lifetime of a statement's preparation.
std::string select(std::initializer_list<const char*> parts) {
  std::string sql = "SELECT ";
  for (const char* part : parts) {
    sql += part;
  }
  return sql;
}

}  // namespace

class Store::Impl {
 public:
  Impl(const std::filesystem::path& path, Mode mode)
      : directory(path.empty() ? nullptr
                               : std::make_unique<DataDirectory>(path, mode == Mode::kOwner)),
        db(open()) {
    if (directory) {
      warnings = directory->warnings();
      read_only_because = directory->read_only_because();
    }
    if (!read_only_because.empty() || mode == Mode::kReader) {
      check_tables(db);
    } else {
      prepare_tables(db);
    }
    if (directory) {
      look_for_lost_notes();
    }
  }

  [[nodiscard]] Database open() const {
    if (!directory) {
      return Database({});
    }
    return directory->read_only_because().empty() ? Database(directory->database())
                                                  : open_read_only(*directory);
  }

  void look_for_lost_notes() {
    const auto expected = directory->last_note();
    const NoteId found = last_note_id(db);
    if (expected && *expected > found) {
      warnings.push_back(
          "notes are missing: " + directory->database() + " knows of notes up to number " +
          std::to_string(found) + ", and number " + std::to_string(*expected) +
          " was written; the file or its -wal was emptied, deleted or replaced by an older copy");
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

  /// Damaged or not.
  bool has_note(std::string_view bank, NoteId id) {
    Statement statement(
        db, "SELECT 1 FROM note n JOIN bank b ON b.id=n.bank WHERE b.name=?1 AND n.id=?2");
    return statement.bind(1, bank).bind(2, id).step();
  }

  static BankInfo read_header(const Statement& row) {
    BankInfo info;
    info.name = row.text(0);
    info.model = row.text(1);
    info.shape.channels = static_cast<std::size_t>(row.integer(2));
    info.shape.head_dim = static_cast<std::size_t>(row.integer(3));
    info.created = row.integer(4);
    info.vocab = static_cast<std::size_t>(row.integer(5));
    return info;
  }

  std::optional<BankInfo> bank_header(std::string_view name) {
    Statement statement(
        db, "SELECT name, model, channels, head_dim, created, vocab FROM bank WHERE name=?1");
    statement.bind(1, name);
    if (!statement.step()) {
      return std::nullopt;
    }
    return read_header(statement);
  }

  [[nodiscard]] std::string why_read_only() const {
    return db.sync_failed() ? "a flush to disk has failed" : read_only_because;
  }

  void check_writable() const {
    if (const std::string why = why_read_only(); !why.empty()) {
      throw Error(ErrorCode::kUnavailable, "the note store " +
                                               (directory ? directory->database() : "in memory") +
                                               " can only be read: " + why +
                                               (db.sync_failed() ? "; restart the server" : ""));
    }
  }

  std::vector<BankInfo> banks(std::string_view name) {
    Statement statement(
        db,
        "SELECT b.name, b.model, b.channels, b.head_dim, b.created, b.vocab, COUNT(n.id), "
        "COALESCE(SUM(LENGTH(n.tokens)+LENGTH(n.text)+LENGTH(n.metadata)),0), "
        "COALESCE(SUM(n.sketched),0) "
        "FROM bank b LEFT JOIN note n ON n.bank=b.id WHERE ?1='' OR b.name=?1 "
        "GROUP BY b.id ORDER BY b.name");
    statement.bind(1, name);
    std::vector<BankInfo> result;
    while (statement.step()) {
      BankInfo info = read_header(statement);
      info.notes = static_cast<std::uint64_t>(statement.integer(6));
      const std::uint64_t vectors =
          (info.shape.channels * kChannelCoordinates + kAnchors * kSketchCoordinates) *
          sizeof(std::uint16_t);
      info.bytes = static_cast<std::uint64_t>(statement.integer(7)) +
                   static_cast<std::uint64_t>(statement.integer(8)) * vectors;
      result.push_back(std::move(info));
    }
    return result;
  }

  /// The bank's row, with what is known of its model's vocabulary; made if there is none.
  std::int64_t require_bank(std::string_view name, std::string_view model,
                            const ChannelShape& shape, std::size_t vocab, std::int64_t now) {
    if (const auto known = bank_id(name)) {
      Statement(db, "UPDATE bank SET vocab=?1 WHERE id=?2 AND vocab=0")
          .bind(1, static_cast<std::int64_t>(vocab))
          .bind(2, *known)
          .run();
      return *known;
    }
    Statement insert(db,
                     "INSERT INTO bank(name, model, channels, head_dim, created, vocab) "
                     "VALUES(?1,?2,?3,?4,?5,?6)");
    insert.bind(1, name).bind(2, model);
    insert.bind(3, static_cast<std::int64_t>(shape.channels));
    insert.bind(4, static_cast<std::int64_t>(shape.head_dim)).bind(5, now);
    insert.bind(6, static_cast<std::int64_t>(vocab)).run();
    return db.last_insert_id();
  }

  /// After a commit, which nothing may turn into an error.
  void remember(NoteId last) noexcept {
    if (directory) {
      directory->remember_last_note(last);
    }
  }

  /// `sql`: id, text, tokens, vector, whether there should be one, whether all is intact.
  std::vector<NoteId> visit_index(const std::string& sql, std::string_view bank, std::size_t vocab,
                                  const IndexVisitor& visitor, bool sketches) {
    std::vector<NoteId> damaged;
    const auto id = bank_id(bank);
    const auto header = bank_header(bank);
    if (!id || !header) {
      return damaged;
    }
    Statement statement(db, sql.c_str());
    statement.bind(1, *id);
    while (statement.step()) {
      const NoteId note = statement.integer(0);
      const auto tokens = values_of<TokenId>(statement.blob(2));
      const auto vector = values_of<std::uint16_t>(statement.blob(3));
      bool good = statement.integer(5) != 0 && tokens_fault(tokens, vocab).empty();
      if (good && statement.integer(4) != 0) {
        good = (sketches ? sketch_fault(vector) : coordinates_fault(vector, header->shape)).empty();
      }
      if (!good) {
        damaged.push_back(note);
        continue;
      }
      const auto text = statement.blob(1);
      visitor({note, {reinterpret_cast<const char*>(text.data()), text.size()}, tokens, vector});
    }
    return damaged;
  }

  std::unique_ptr<DataDirectory> directory;
  Database db;
  std::vector<std::string> warnings;
  std::string read_only_because;
};

Store::Store(const std::filesystem::path& directory, Mode mode)
    : impl_(std::make_unique<Impl>(directory, mode)) {}
Store::~Store() = default;

const std::vector<std::string>& Store::warnings() const noexcept { return impl_->warnings; }

std::string Store::read_only_because() const { return impl_->why_read_only(); }

std::vector<BankInfo> Store::banks() { return impl_->banks(""); }

std::vector<BankInfo> Store::bank_headers() {
  Statement statement(impl_->db,
                      "SELECT name, model, channels, head_dim, created, vocab FROM bank");
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
  if (!is_bank_name(bank)) {
    throw Error(ErrorCode::kInvalidArgument, "a bank's name has " + bank_name_form());
  }
  if (const auto known = impl_->bank_header(bank)) {
    check_bank(*known, model, shape);
  }
}

std::vector<NoteId> Store::append(std::string_view bank, std::string_view model,
                                  const ChannelShape& shape, std::span<const NoteDraft> notes,
                                  std::size_t vocab) {
  impl_->check_writable();
  check(bank, model, shape);
  const std::int64_t now = unix_seconds();
  std::vector<NoteId> ids;
  {
    Transaction transaction(impl_->db);
    NoteInserter inserter(impl_->db, impl_->require_bank(bank, model, shape, vocab, now));
    for (const NoteDraft& note : notes) {
      ids.push_back(inserter.insert(note, now));
    }
    transaction.commit();
  }
  if (!ids.empty()) {
    impl_->remember(ids.back());
  }
  return ids;
}

std::uint64_t Store::append_all(std::string_view bank, std::string_view model,
                                const ChannelShape& shape, std::size_t vocab,
                                const NoteSource& source) {
  impl_->check_writable();
  check(bank, model, shape);
  const std::int64_t now = unix_seconds();
  std::uint64_t count = 0;
  NoteId last = 0;
  {
    Transaction transaction(impl_->db);
    NoteInserter inserter(impl_->db, impl_->require_bank(bank, model, shape, vocab, now));
    for (auto notes = source(); !notes.empty(); notes = source()) {
      for (const NoteDraft& note : notes) {
        last = inserter.insert(note, now);
      }
      count += notes.size();
    }
    transaction.commit();
  }
  if (count > 0) {
    impl_->remember(last);
  }
  return count;
}

std::optional<Note> Store::find_note(std::string_view bank, NoteId id) {
  auto notes = find_notes(bank, {&id, 1});
  if (!notes.empty()) {
    return std::move(notes.front());
  }
  if (impl_->has_note(bank, id)) {
    throw Error(ErrorCode::kCorrupt, "note " + std::to_string(id) + " of bank " +
                                         std::string(bank) +
                                         " is damaged: its checksum does not fit");
  }
  return std::nullopt;
}

std::vector<Note> Store::find_notes(std::string_view bank, std::span<const NoteId> ids) {
  const std::string sql = select({kNoteColumns,
                                  " FROM note n JOIN bank b ON b.id=n.bank "
                                  "WHERE b.name=?1 AND n.id=?2 AND ",
                                  kNoteIntact});
  Statement statement(impl_->db, sql.c_str());
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

std::vector<NoteId> Store::visit_notes(std::string_view bank, const NoteVisitor& visitor) {
  std::vector<NoteId> damaged;
  const auto id = impl_->bank_id(bank);
  if (!id) {
    return damaged;
  }
  const std::string sql =
      select({kNoteColumns, ", c.vector, s.vector, ", kNoteIntact,
              " AND (n.sketched = 0 OR COALESCE(", kSketchIntact, " AND ", kCoordinatesIntact,
              ", 0)) FROM note n LEFT JOIN sketch s ON s.note=n.id ",
              "LEFT JOIN coordinates c ON c.note=n.id ", "WHERE n.bank=?1 ORDER BY n.id"});
  Statement statement(impl_->db, sql.c_str());
  statement.bind(1, *id);
  while (statement.step()) {
    if (statement.integer(9) == 0) {
      damaged.push_back(statement.integer(0));
      continue;
    }
    const auto coordinates = values_of<std::uint16_t>(statement.blob(7));
    const auto sketch = values_of<std::uint16_t>(statement.blob(8));
    visitor(read_note(statement), coordinates, sketch);
  }
  return damaged;
}

std::vector<NoteId> Store::visit_sketches(std::string_view bank, std::size_t vocab,
                                          const IndexVisitor& visitor) {
  return impl_->visit_index(select({"n.id, n.text, n.tokens, s.vector, n.sketched, ", kNoteIntact,
                                    " AND (n.sketched = 0 OR COALESCE(", kSketchIntact,
                                    ", 0)) FROM note n LEFT JOIN sketch s ON s.note=n.id ",
                                    "WHERE n.bank=?1 ORDER BY n.id"}),
                            bank, vocab, visitor, true);
}

std::vector<NoteId> Store::visit_coordinates(std::string_view bank, std::size_t vocab,
                                             const IndexVisitor& visitor) {
  return impl_->visit_index(
      select({"n.id, n.text, n.tokens, c.vector, 1, ", kNoteIntact, " AND COALESCE(",
              kCoordinatesIntact, ", 0) FROM note n LEFT JOIN coordinates c ON c.note=n.id ",
              "WHERE n.bank=?1 AND n.sketched = 1 ORDER BY n.id"}),
      bank, vocab, visitor, false);
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
  if (!impl_->has_note(bank, id)) {
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
