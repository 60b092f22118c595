// The coordinates of a bank's notes in memory, and the search over them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

#include "memory/block_dots.h"
#include "memory/note.h"

namespace spel::memory {

struct Match {
  NoteId id = 0;
  float score = 0.0F;
};

/// Sketches of consecutive tokens, for Ranker::kSum. Contiguous; a note is one block. A removed
/// note's block is filled from the end, so the order means nothing: ties go to the lowest id.
class SketchIndex {
 public:
  /// `sketch` is [kSketchCoordinates][kAnchors]. Ids come in ascending order or not at all twice.
  void add(NoteId id, std::span<const std::uint16_t> sketch);
  void remove(NoteId id);
  [[nodiscard]] std::size_t size() const noexcept { return ids_.size(); }

  /// `query` is [tokens][kSketchCoordinates], oldest token first, its last one what the text would
  /// go on from. Two rounds: the first kCoarseCoordinates of the last kCoarseTokens against
  /// every note, then all of all tokens against the best kRerank. The `top` best, best first.
  [[nodiscard]] std::vector<Match> search(std::span<const float> query, std::size_t top) const;

  static constexpr std::size_t kCoarseTokens = 2;
  static constexpr std::size_t kCoarseCoordinates = 16;
  static constexpr std::size_t kRerank = 256;

 private:
  static constexpr std::size_t kBlock = kSketchCoordinates * kAnchors;

  /// `query` is [tokens][dim]: the first `dim` coordinates of each.
  [[nodiscard]] float best_alignment(std::size_t slot, std::span<const float> query,
                                     std::size_t dim) const;

  BlockDots dots_ = select_block_dots();
  std::vector<std::uint16_t> blocks_;  ///< [notes][kSketchCoordinates][kAnchors]
  std::vector<NoteId> ids_;
  std::unordered_map<NoteId, std::size_t> slots_;
};

/// The document's coordinates, for Ranker::kNative and kVotes: blocks of kBlockRows notes.
class NativeIndex {
 public:
  explicit NativeIndex(std::size_t channels) : channels_(channels) {}

  /// `coordinates` is [channels][kChannelCoordinates].
  void add(NoteId id, std::span<const std::uint16_t> coordinates);
  void remove(NoteId id);
  [[nodiscard]] std::size_t size() const noexcept { return ids_.size(); }

  /// `query` is [channels][kChannelCoordinates], the sum of the projected queries of the tokens
  /// looked at. kVotes: the votes of the channels, ties broken by the sum.
  [[nodiscard]] std::vector<Match> search(std::span<const float> query, Ranker ranker,
                                          std::size_t top) const;

 private:
  [[nodiscard]] std::size_t dim() const noexcept { return channels_ * kChannelCoordinates; }
  [[nodiscard]] std::uint16_t& at(std::size_t slot, std::size_t i) {
    return blocks_[(slot / kBlockRows * dim() + i) * kBlockRows + slot % kBlockRows];
  }

  BlockDots dots_ = select_block_dots();
  std::size_t channels_;
  std::vector<std::uint16_t> blocks_;  ///< [notes / kBlockRows][channels * coordinates][kBlockRows]
  std::vector<NoteId> ids_;
  std::unordered_map<NoteId, std::size_t> slots_;
};

}  // namespace spel::memory
