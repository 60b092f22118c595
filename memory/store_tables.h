// The tables of a store and the form of their rows. Only for the store.
#pragma once

#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

#include "memory/note.h"
#include "memory/sqlite.h"

namespace spel::memory {

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

/// Every row ends with a checksum of the others' values, so that a row of another note does not
/// pass for this one's. An expression for SELECT, of a table named n, s or c: 1 if it holds.
inline constexpr const char* kNoteIntact =
    "n.checksum = row_checksum(n.id, n.bank, n.start, n.score, n.created, n.metadata, n.text, "
    "n.tokens, n.sketched)";
inline constexpr const char* kSketchIntact = "s.checksum = row_checksum(s.note, s.bank, s.vector)";
inline constexpr const char* kCoordinatesIntact =
    "c.checksum = row_checksum(c.note, c.bank, c.vector)";

/// Columns 0 to 6 of what read_note reads, of a table named n.
inline constexpr const char* kNoteColumns =
    "n.id, n.start, n.score, n.created, n.metadata, n.text, n.tokens";
[[nodiscard]] Note read_note(const Statement& row);

/// Creates the tables of an empty database, or brings those of an older format to this one, in one
/// transaction. Throws kCorrupt for a format that is not read, and says what to do.
void prepare_tables(Database& db);
/// Throws the same for a database that cannot be written to and is not of this format.
void check_tables(Database& db);

/// Writes notes of one bank, within a transaction of the caller's.
class NoteInserter {
 public:
  NoteInserter(Database& db, std::int64_t bank);
  /// Returns the note's id: higher than any that was ever given.
  NoteId insert(const NoteDraft& note, std::int64_t now);

 private:
  std::int64_t bank_;
  NoteId last_;
  Statement note_;
  Statement sketch_;
  Statement coordinates_;
};

/// The highest id ever given to a note; 0 if there was none.
[[nodiscard]] NoteId last_note_id(Database& db);

}  // namespace spel::memory
