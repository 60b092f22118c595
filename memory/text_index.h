// The words of a bank's notes in memory, and the search for those a query has in common with them.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "memory/match.h"

namespace spel::memory {

/// Compares bytes, three at a time, whatever the vocabulary is: of letters the case and of blanks
/// the kind do not count. What few notes hold weighs more (the digits of a key), and what stands
/// nearer to the query's end; a note in which the query's end stands as one piece, with something
/// after it, comes before one that holds the same pieces scattered.
///
/// Every search looks at every note: a note takes its bytes and about 80 more.
class TextIndex {
 public:
  /// `content` is the same for notes of the same tokens. No id comes twice.
  void add(NoteId id, std::uint64_t content, std::string_view text);
  void remove(NoteId id);
  [[nodiscard]] std::size_t size() const noexcept { return notes_.size(); }

  /// Memory taken, the hash table's nodes by a guess.
  [[nodiscard]] std::size_t bytes() const noexcept;

  /// The `top` notes most like the query's last kQueryBytes, best first, of the same content only
  /// one; those that have nothing in common with it are left out. Scores are from 0 to 1, 1 being a
  /// note that holds all of the query.
  [[nodiscard]] std::vector<Match> search(std::string_view query, std::size_t top) const;

  static constexpr std::size_t kQueryBytes = 130;
  /// Notes that are looked at closely.
  static constexpr std::size_t kRerank = 256;
  /// Of a longer text only the beginning is found.
  static constexpr std::size_t kTextBytesMax = 8192;

 private:
  static constexpr std::size_t kPageBytes = 64 * 1024;
  /// Read beyond a text's end, so that three bytes are one word.
  static constexpr std::size_t kSlack = 4;
  using Page = std::array<char, kPageBytes + kSlack>;

  struct Entry {
    NoteId id;
    std::uint64_t content;
    std::uint32_t page;
    std::uint16_t offset;
    std::uint16_t size;
  };

  [[nodiscard]] std::string_view text_of(const Entry& note) const {
    return {pages_[note.page]->data() + note.offset, note.size};
  }
  void place(Entry& note, std::string_view text);
  void compact();

  std::vector<std::unique_ptr<Page>> pages_;
  std::size_t page_used_ = kPageBytes;  ///< Of the last page.
  std::size_t dead_bytes_ = 0;          ///< Of notes that were removed.
  std::size_t live_bytes_ = 0;
  std::vector<Entry> notes_;
  std::unordered_map<NoteId, std::size_t> slots_;
};

}  // namespace spel::memory
