// Banks of notes on disk: one SQLite file, one transaction a write.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "memory/note.h"

namespace spel::memory {

/// Not thread-safe. Every function throws Error: kIo when the disk is full or fails (nothing was
/// written then, and the next call may succeed), kUnavailable when nothing can be written here or
/// somebody else has the store, kCorrupt for a file that is not what it should be.
///
/// What a function that writes has returned from survives a kill and a power failure. Every row has
/// a checksum; a damaged one is left out of what is read.
class Store {
 public:
  enum class Mode {
    kOwner,   ///< The only writer; a second one is refused.
    kReader,  ///< Reads beside an owner.
  };

  /// An owner creates `directory` if need be, a reader throws kNotFound; empty: in memory, gone
  /// with the object. Where nothing can be written, what is there is read: see read_only_because().
  Store(const std::filesystem::path& directory, Mode mode);
  ~Store();
  Store(const Store&) = delete;
  Store& operator=(const Store&) = delete;

  /// What whoever started the program should know: files open to others, notes that are missing.
  [[nodiscard]] const std::vector<std::string>& warnings() const noexcept;

  [[nodiscard]] std::vector<BankInfo> banks();
  /// The same without `notes` and `bytes`, which take a pass over the notes.
  [[nodiscard]] std::vector<BankInfo> bank_headers();
  [[nodiscard]] std::optional<BankInfo> find_bank(std::string_view name);

  [[nodiscard]] bool has_bank(std::string_view name);
  /// Throws as append() would for this bank, were the disk in order.
  void check(std::string_view bank, std::string_view model, const ChannelShape& shape);

  /// Stores the notes, all or none, and the bank if it is new. Returns their ids, ascending. Throws
  /// kInvalidArgument for a bad name, and for a bank of another model or shape naming both hashes.
  /// `vocab` is the model's number of tokens, 0 if it is not known.
  std::vector<NoteId> append(std::string_view bank, std::string_view model,
                             const ChannelShape& shape, std::span<const NoteDraft> notes,
                             std::size_t vocab = 0);

  /// The next notes; none: there are no more.
  using NoteSource = std::function<std::vector<NoteDraft>()>;
  /// The same for more notes than memory should hold: all that `source` gives, or none, also if it
  /// throws. Returns how many.
  std::uint64_t append_all(std::string_view bank, std::string_view model, const ChannelShape& shape,
                           std::size_t vocab, const NoteSource& source);

  /// Throws kCorrupt for a damaged one.
  [[nodiscard]] std::optional<Note> find_note(std::string_view bank, NoteId id);
  /// In the order of `ids`; those that are gone or damaged are left out.
  [[nodiscard]] std::vector<Note> find_notes(std::string_view bank, std::span<const NoteId> ids);

  using NoteVisitor = std::function<void(const Note&, std::span<const std::uint16_t> coordinates,
                                         std::span<const std::uint16_t> sketch)>;
  /// Every note of a bank, ascending by id. Returns the ids of the damaged ones, which are left
  /// out.
  std::vector<NoteId> visit_notes(std::string_view bank, const NoteVisitor& visitor);

  /// Text and tokens are the visitor's until it returns, and so is a sketch; a passage has none.
  struct IndexRow {
    NoteId id = 0;
    std::string_view text;
    std::span<const TokenId> tokens;
    std::span<const std::uint16_t> vector;
  };
  using IndexVisitor = std::function<void(const IndexRow&)>;
  /// What an index is built from: every note with its sketch, or every note that has coordinates,
  /// with those. Left out, and returned, are damaged ones and those whose values cannot be, for a
  /// model of `vocab` tokens (0: not known).
  std::vector<NoteId> visit_sketches(std::string_view bank, std::size_t vocab,
                                     const IndexVisitor& visitor);
  std::vector<NoteId> visit_coordinates(std::string_view bank, std::size_t vocab,
                                        const IndexVisitor& visitor);

  /// False if there was none.
  bool remove_bank(std::string_view name);
  bool remove_note(std::string_view bank, NoteId id);

  /// Why nothing can be written until a restart: a flush to disk failed, or the directory cannot be
  /// written to. Empty if it can.
  [[nodiscard]] std::string read_only_because() const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace spel::memory
