// Which note lies where in an index.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <unordered_map>
#include <vector>

#include "memory/note.h"

namespace spel::memory {

/// Notes in slots without a gap: into the place of one that goes comes the last one. What lies in
/// the slots is the index's affair.
class NoteSlots {
 public:
  [[nodiscard]] std::size_t size() const noexcept { return ids_.size(); }
  [[nodiscard]] bool empty() const noexcept { return ids_.empty(); }
  [[nodiscard]] NoteId id(std::size_t slot) const { return ids_[slot]; }
  /// The same for notes of the same tokens.
  [[nodiscard]] std::uint64_t content(std::size_t slot) const { return contents_[slot]; }
  [[nodiscard]] std::optional<std::size_t> find(NoteId id) const {
    const auto found = slots_.find(id);
    return found != slots_.end() ? std::optional(found->second) : std::nullopt;
  }

  /// At the end. No id comes twice.
  void add(NoteId id, std::uint64_t content) {
    slots_[id] = ids_.size();
    ids_.push_back(id);
    contents_.push_back(content);
  }
  /// Of the note in `slot`; the last one lies there then, if it was another.
  void remove(std::size_t slot) {
    slots_.erase(ids_[slot]);
    if (slot + 1 != ids_.size()) {
      ids_[slot] = ids_.back();
      contents_[slot] = contents_.back();
      slots_[ids_[slot]] = slot;
    }
    ids_.pop_back();
    contents_.pop_back();
  }

 private:
  std::vector<NoteId> ids_;  ///< By slot.
  std::vector<std::uint64_t> contents_;
  std::unordered_map<NoteId, std::size_t> slots_;
};

}  // namespace spel::memory
