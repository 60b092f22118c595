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
/// written then, and the next call may succeed), kUnavailable when writing is no longer safe or
/// somebody else has the store, kCorrupt for a file that is not what it should be.
///
/// What a function that writes has returned from survives a kill and a power failure.
class Store {
 public:
  enum class Mode {
    kOwner,   ///< The only writer; a second one is refused.
    kReader,  ///< Reads beside an owner.
  };

  /// An owner creates `directory` if need be, a reader throws kNotFound; empty: in memory, gone
  /// with the object.
  Store(const std::filesystem::path& directory, Mode mode);
  ~Store();
  Store(const Store&) = delete;
  Store& operator=(const Store&) = delete;

  [[nodiscard]] std::vector<BankInfo> banks();
  /// The same without `notes` and `bytes`, which take a pass over the notes.
  [[nodiscard]] std::vector<BankInfo> bank_headers();
  [[nodiscard]] std::optional<BankInfo> find_bank(std::string_view name);

  [[nodiscard]] bool has_bank(std::string_view name);
  /// Throws as append() would for this bank, were the disk in order.
  void check(std::string_view bank, std::string_view model, const ChannelShape& shape);

  /// Stores the notes, all or none, and the bank if it is new. Returns their ids, ascending. Throws
  /// kInvalidArgument for a bad name, and for a bank of another model or shape naming both hashes.
  std::vector<NoteId> append(std::string_view bank, std::string_view model,
                             const ChannelShape& shape, std::span<const NoteDraft> notes);

  [[nodiscard]] std::optional<Note> find_note(std::string_view bank, NoteId id);
  /// In the order of `ids`; those that are gone are left out.
  [[nodiscard]] std::vector<Note> find_notes(std::string_view bank, std::span<const NoteId> ids);

  using NoteVisitor = std::function<void(const Note&, std::span<const std::uint16_t> coordinates,
                                         std::span<const std::uint16_t> sketch)>;
  /// Every note of a bank, ascending by id.
  void visit_notes(std::string_view bank, const NoteVisitor& visitor);

  using VectorVisitor = std::function<void(NoteId, std::span<const std::uint16_t>)>;
  /// Only the sketches, or only the coordinates: what an index is built from.
  void visit_sketches(std::string_view bank, const VectorVisitor& visitor);
  void visit_coordinates(std::string_view bank, const VectorVisitor& visitor);

  /// False if there was none.
  bool remove_bank(std::string_view name);
  bool remove_note(std::string_view bank, NoteId id);

  /// Nothing can be written until a restart: a flush to disk failed.
  [[nodiscard]] bool is_read_only() const noexcept;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace spel::memory
