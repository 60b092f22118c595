#include "memory/store_tables.h"

#include <string>

#include "config/base/error.h"

namespace spel::memory {
namespace {

// Sketches and coordinates have tables of their own: a ranker that does not ask for them does not
// read them. A passage has no row in either.
constexpr const char* kSchema = R"sql(
CREATE TABLE bank(
  id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, model TEXT NOT NULL,
  channels INTEGER NOT NULL, head_dim INTEGER NOT NULL, created INTEGER NOT NULL,
  vocab INTEGER NOT NULL DEFAULT 0);
CREATE TABLE note(
  id INTEGER PRIMARY KEY AUTOINCREMENT, bank INTEGER NOT NULL REFERENCES bank(id),
  start INTEGER NOT NULL, score REAL NOT NULL, created INTEGER NOT NULL,
  metadata TEXT NOT NULL, text TEXT NOT NULL, tokens BLOB NOT NULL,
  sketched INTEGER NOT NULL DEFAULT 1, checksum INTEGER NOT NULL DEFAULT 0);
CREATE INDEX note_bank ON note(bank, id);
CREATE TABLE sketch(note INTEGER PRIMARY KEY, bank INTEGER NOT NULL, vector BLOB NOT NULL,
  checksum INTEGER NOT NULL DEFAULT 0);
CREATE TABLE coordinates(note INTEGER PRIMARY KEY, bank INTEGER NOT NULL, vector BLOB NOT NULL,
  checksum INTEGER NOT NULL DEFAULT 0);
)sql";

// From format 2, which had no passages and no checksums: what is there is taken for good.
constexpr const char* kAddColumns = R"sql(
ALTER TABLE bank ADD COLUMN vocab INTEGER NOT NULL DEFAULT 0;
ALTER TABLE note ADD COLUMN sketched INTEGER NOT NULL DEFAULT 1;
ALTER TABLE note ADD COLUMN checksum INTEGER NOT NULL DEFAULT 0;
ALTER TABLE sketch ADD COLUMN checksum INTEGER NOT NULL DEFAULT 0;
ALTER TABLE coordinates ADD COLUMN checksum INTEGER NOT NULL DEFAULT 0;
UPDATE note SET checksum = row_checksum(id, bank, start, score, created, metadata, text, tokens,
  sketched);
UPDATE sketch SET checksum = row_checksum(note, bank, vector);
UPDATE coordinates SET checksum = row_checksum(note, bank, vector);
)sql";

constexpr const char* kInsertNote =
    "INSERT INTO note(id, bank, start, score, created, metadata, text, tokens, sketched, checksum) "
    "VALUES(?1,?2,?3,?4,?5,?6,?7,?8,?9, row_checksum(?1,?2,?3,?4,?5,?6,?7,?8,?9))";
constexpr const char* kInsertSketch =
    "INSERT INTO sketch(note, bank, vector, checksum) VALUES(?1,?2,?3, row_checksum(?1,?2,?3))";
constexpr const char* kInsertCoordinates =
    "INSERT INTO coordinates(note, bank, vector, checksum) "
    "VALUES(?1,?2,?3, row_checksum(?1,?2,?3))";

Error wrong_format(std::int64_t found) {
  const bool older = found < kBankFormatOldest;
  return Error(
      ErrorCode::kCorrupt,
      "the note store has format " + std::to_string(found) + "; this program reads formats " +
          std::to_string(kBankFormatOldest) + " to " + std::to_string(kBankFormat) +
          (older ? ": export its texts with the program that wrote it, and write them again"
                 : ": use the newer program that wrote it"));
}

std::int64_t format_of(Database& db) { return db.integer("PRAGMA user_version"); }

}  // namespace

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

void prepare_tables(Database& db) {
  const std::int64_t format = format_of(db);
  if (format != 0 && (format < kBankFormatOldest || format > kBankFormat)) {
    throw wrong_format(format);
  }
  db.exec("PRAGMA journal_mode=WAL");
  db.exec("PRAGMA synchronous=FULL");
  if (format == kBankFormat) {
    return;
  }
  Transaction transaction(db);
  db.exec(format == 0 ? kSchema : kAddColumns);
  db.exec(("PRAGMA user_version=" + std::to_string(kBankFormat)).c_str());
  transaction.commit();
}

void check_tables(Database& db) {
  const std::int64_t format = format_of(db);
  if (format == 0) {
    throw Error(ErrorCode::kCorrupt, "the note store is empty, and nothing can be written to it");
  }
  if (format < kBankFormat && format >= kBankFormatOldest) {
    throw Error(ErrorCode::kCorrupt,
                "the note store has the older format " + std::to_string(format) +
                    "; start the server once with it where it can write, which brings it to "
                    "format " +
                    std::to_string(kBankFormat));
  }
  if (format != kBankFormat) {
    throw wrong_format(format);
  }
}

NoteInserter::NoteInserter(Database& db, std::int64_t bank)
    : bank_(bank),
      last_(last_note_id(db)),
      note_(db, kInsertNote),
      sketch_(db, kInsertSketch),
      coordinates_(db, kInsertCoordinates) {}

// The id is given here and not by SQLite, because the checksum is over it too.
NoteId NoteInserter::insert(const NoteDraft& note, std::int64_t now) {
  const NoteId id = ++last_;
  const bool sketched = !note.sketch.empty();
  note_.bind(1, id).bind(2, bank_).bind(3, static_cast<std::int64_t>(note.start));
  note_.bind(4, static_cast<double>(note.score)).bind(5, now);
  note_.bind(6, std::string_view(note.metadata)).bind(7, std::string_view(note.text));
  note_.bind_blob(8, bytes_of(note.tokens)).bind(9, std::int64_t{sketched ? 1 : 0}).run();
  if (sketched) {
    sketch_.bind(1, id).bind(2, bank_).bind_blob(3, bytes_of(note.sketch)).run();
    coordinates_.bind(1, id).bind(2, bank_).bind_blob(3, bytes_of(note.coordinates)).run();
  }
  return id;
}

NoteId last_note_id(Database& db) {
  return db.integer(
      "SELECT MAX(COALESCE((SELECT seq FROM sqlite_sequence WHERE name='note'), 0), "
      "COALESCE((SELECT MAX(id) FROM note), 0))");
}

}  // namespace spel::memory
