// The coordinates of a bank's notes in memory, and the search over them.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "memory/coarse_sketch.h"
#include "memory/match.h"
#include "memory/note.h"
#include "memory/note_slots.h"

namespace spel::kernels {
class Kernels;
}

namespace spel::memory {

/// Sketches of consecutive tokens, for Ranker::kSum. A removed note's place is filled from the end,
/// so the order means nothing: ties go to the lowest id.
class SketchIndex {
 public:
  explicit SketchIndex(const kernels::Kernels& kernels) : kernels_(&kernels) {}

  /// `sketch` is [kSketchCoordinates][kAnchors], `content` the same for notes of the same tokens.
  /// No id comes twice.
  void add(NoteId id, std::uint64_t content, std::span<const std::uint16_t> sketch);
  void remove(NoteId id);
  [[nodiscard]] std::size_t size() const noexcept { return notes_.size(); }

  /// `query` is [tokens][kSketchCoordinates], oldest token first, its last one what the text would
  /// go on from. Two rounds: the last kernels::kCoarseTokens against every note in 8-bit integers,
  /// then all tokens against the best kRerank. The `top` best, best first, of the same content only
  /// one.
  [[nodiscard]] std::vector<Match> search(std::span<const float> query, std::size_t top) const;

  static constexpr std::size_t kRerank = 256;
  /// Notes of one content that may be among those: the same tokens are sketched from another place,
  /// or after another beginning, and only the second round tells which is closest.
  static constexpr std::size_t kRerankCopies = 4;

 private:
  struct Candidate {
    std::int32_t score;
    NoteId id;
    std::uint64_t content;
    std::size_t slot;
  };
  static void keep_candidates(std::vector<Candidate>& candidates, std::size_t count);

  static constexpr std::size_t kBlock = kSketchCoordinates * kAnchors;
  /// Notes that lie together. Pages of this size and not one array: growing never copies what is
  /// there, which at a million notes would be a gigabyte.
  static constexpr std::size_t kPageNotes = 1024;

  struct Page {
    alignas(64) std::array<std::uint8_t, kPageNotes * kCoarseBytes> coarse;
    alignas(64) std::array<std::uint16_t, kPageNotes * kBlock> sketches;
  };

  [[nodiscard]] std::uint8_t* coarse_of(std::size_t slot) {
    return &pages_[slot / kPageNotes]->coarse[slot % kPageNotes * kCoarseBytes];
  }
  [[nodiscard]] std::uint16_t* sketch_of(std::size_t slot) const {
    return &pages_[slot / kPageNotes]->sketches[slot % kPageNotes * kBlock];
  }
  /// The slots of the `count` best notes of the first round, in no order.
  [[nodiscard]] std::vector<std::size_t> shortlist(const CoarseQuery& query,
                                                   std::size_t count) const;
  /// `query` is [tokens][kSketchCoordinates].
  [[nodiscard]] float best_alignment(std::size_t slot, std::span<const float> query) const;

  const kernels::Kernels* kernels_;
  std::vector<std::unique_ptr<Page>> pages_;
  NoteSlots notes_;
};

/// The document's coordinates, for Ranker::kNative and kVotes: panels of kernels::kLanes notes.
class NativeIndex {
 public:
  NativeIndex(const kernels::Kernels& kernels, std::size_t channels)
      : kernels_(&kernels), channels_(channels) {}

  /// `coordinates` is [channels][kChannelCoordinates], `content` as in SketchIndex.
  void add(NoteId id, std::uint64_t content, std::span<const std::uint16_t> coordinates);
  void remove(NoteId id);
  [[nodiscard]] std::size_t size() const noexcept { return notes_.size(); }

  /// `query` is [channels][kChannelCoordinates], the sum of the projected queries of the tokens
  /// looked at. kVotes: the votes of the channels, ties broken by the sum.
  [[nodiscard]] std::vector<Match> search(std::span<const float> query, Ranker ranker,
                                          std::size_t top) const;

 private:
  [[nodiscard]] std::size_t dim() const noexcept { return channels_ * kChannelCoordinates; }
  [[nodiscard]] std::uint16_t& at(std::size_t slot, std::size_t i) {
    return panels_[(slot / kernels::kLanes * dim() + i) * kernels::kLanes + slot % kernels::kLanes];
  }

  const kernels::Kernels* kernels_;
  std::size_t channels_;
  std::vector<std::uint16_t> panels_;  ///< [notes / kLanes][channels * coordinates][kLanes]
  NoteSlots notes_;
};

}  // namespace spel::memory
