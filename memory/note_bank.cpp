#include "memory/note_bank.h"

#include <algorithm>
#include <utility>

#include "config/base/error.h"

namespace spel::memory {
namespace {

Error no_such_bank(std::string_view name) {
  return Error(ErrorCode::kNotFound, "there is no bank " + std::string(name));
}

}  // namespace

NoteBank::NoteBank(const std::filesystem::path& directory, std::string model,
                   const ChannelShape& shape)
    : model_(std::move(model)), projection_(shape), store_(directory, Store::Mode::kOwner) {
  for (const BankInfo& bank : store_.bank_headers()) {
    if (bank.model != model_ || !(bank.shape == shape)) {
      continue;
    }
    SketchIndex& sketches = indexes_[bank.name].sketches;
    store_.visit_sketches(bank.name, [&](NoteId id, std::span<const std::uint16_t> sketch) {
      if (sketch.size() != kSketchCoordinates * kAnchors) {
        throw Error(ErrorCode::kCorrupt, "note " + std::to_string(id) + " of bank " + bank.name +
                                             " has a sketch of " + std::to_string(sketch.size()) +
                                             " coordinates; expected " +
                                             std::to_string(kSketchCoordinates * kAnchors));
      }
      sketches.add(id, sketch);
    });
  }
}

std::vector<NoteId> NoteBank::append(std::string_view bank, std::span<const NoteDraft> notes) {
  const std::lock_guard store_lock(store_mutex_);
  std::vector<NoteId> ids = store_.append(bank, model_, projection_.shape(), notes);
  const std::unique_lock index_lock(index_mutex_);
  Indexes& indexes = indexes_.try_emplace(std::string(bank)).first->second;
  for (std::size_t i = 0; i < ids.size(); ++i) {
    indexes.sketches.add(ids[i], notes[i].sketch);
    if (indexes.native) {
      indexes.native->add(ids[i], notes[i].coordinates);
    }
  }
  return ids;
}

void NoteBank::check_bank(std::string_view bank) {
  const std::lock_guard store_lock(store_mutex_);
  store_.check(bank, model_, projection_.shape());
}

// Store lock held. An unknown bank, or one of another model.
void NoteBank::require_bank(std::string_view bank) {
  if (!store_.has_bank(bank)) {
    throw no_such_bank(bank);
  }
  store_.check(bank, model_, projection_.shape());
}

std::vector<Match> NoteBank::search(std::string_view bank, const CapturedQuery& query,
                                    Ranker ranker, std::size_t top) {
  if (ranker != Ranker::kSum) {
    return search_native(bank, query, ranker, top);
  }
  const std::size_t width = projection_.shape().width();
  const std::size_t tokens = std::min(query.keys.size() / width, kQueryTokens);
  const auto keys = query.keys.last(tokens * width);
  std::vector<float> sketches(tokens * kSketchCoordinates);
  for (std::size_t t = 0; t < tokens; ++t) {
    projection_.sketch(keys.subspan(t * width, width),
                       std::span(sketches).subspan(t * kSketchCoordinates, kSketchCoordinates));
  }
  const std::shared_lock index_lock(index_mutex_);
  const auto found = indexes_.find(bank);
  return found == indexes_.end() ? std::vector<Match>{}
                                 : found->second.sketches.search(sketches, top);
}

std::vector<Match> NoteBank::search_native(std::string_view bank, const CapturedQuery& query,
                                           Ranker ranker, std::size_t top) {
  const ChannelShape& shape = projection_.shape();
  const std::size_t tokens = std::min(query.queries.size() / shape.width(), kNativeQueryTokens);
  const auto queries = query.queries.last(tokens * shape.width());
  // Likeness is linear in the query: one sum stands for all tokens looked at.
  std::vector<float> total(shape.channels * kChannelCoordinates);
  std::vector<float> one(total.size());
  for (std::size_t t = 0; t < tokens; ++t) {
    projection_.coordinates(queries.subspan(t * shape.width(), shape.width()), one);
    for (std::size_t i = 0; i < total.size(); ++i) {
      total[i] += one[i];
    }
  }
  const std::lock_guard store_lock(store_mutex_);
  const std::unique_lock index_lock(index_mutex_);
  const auto found = indexes_.find(bank);
  if (found == indexes_.end()) {
    return {};
  }
  std::optional<NativeIndex>& native = found->second.native;
  if (!native) {
    NativeIndex built(shape.channels);
    store_.visit_coordinates(bank, [&](NoteId id, std::span<const std::uint16_t> coordinates) {
      built.add(id, coordinates);
    });
    native = std::move(built);
  }
  return native->search(total, ranker, top);
}

std::vector<Note> NoteBank::address(std::string_view bank, const CapturedQuery& query,
                                    Ranker ranker, std::size_t top) {
  {
    const std::lock_guard store_lock(store_mutex_);
    require_bank(bank);
  }
  // More than asked for, in case some are copies. The search looks closely at as many anyway.
  const std::vector<Match> matches =
      search(bank, query, ranker, std::max(top, SketchIndex::kRerank));
  std::vector<Note> notes;
  const std::lock_guard store_lock(store_mutex_);
  for (std::size_t at = 0; at < matches.size() && notes.size() < top; at += top) {
    const auto some = std::span(matches).subspan(at, std::min(top, matches.size() - at));
    std::vector<NoteId> ids(some.size());
    std::transform(some.begin(), some.end(), ids.begin(), [](const Match& m) { return m.id; });
    // A note deleted since the search is left out.
    for (Note& note : store_.find_notes(bank, ids)) {
      const bool is_copy = std::any_of(notes.begin(), notes.end(), [&](const Note& other) {
        return other.tokens == note.tokens;
      });
      if (is_copy || notes.size() == top) {
        continue;
      }
      note.score = std::find_if(some.begin(), some.end(), [&](const Match& match) {
                     return match.id == note.id;
                   })->score;
      notes.push_back(std::move(note));
    }
  }
  return notes;
}

std::vector<BankInfo> NoteBank::banks() {
  const std::lock_guard store_lock(store_mutex_);
  return store_.banks();
}

BankInfo NoteBank::bank(std::string_view name) {
  const std::lock_guard store_lock(store_mutex_);
  auto found = store_.find_bank(name);
  if (!found) {
    throw no_such_bank(name);
  }
  return std::move(*found);
}

Note NoteBank::note(std::string_view bank, NoteId id) {
  const std::lock_guard store_lock(store_mutex_);
  auto found = store_.find_note(bank, id);
  if (!found) {
    throw Error(ErrorCode::kNotFound,
                "bank " + std::string(bank) + " has no note " + std::to_string(id));
  }
  return std::move(*found);
}

void NoteBank::remove_bank(std::string_view name) {
  const std::lock_guard store_lock(store_mutex_);
  if (!store_.remove_bank(name)) {
    throw no_such_bank(name);
  }
  const std::unique_lock index_lock(index_mutex_);
  if (const auto found = indexes_.find(name); found != indexes_.end()) {
    indexes_.erase(found);
  }
}

void NoteBank::remove_note(std::string_view bank, NoteId id) {
  const std::lock_guard store_lock(store_mutex_);
  if (!store_.remove_note(bank, id)) {
    throw Error(ErrorCode::kNotFound,
                "bank " + std::string(bank) + " has no note " + std::to_string(id));
  }
  const std::unique_lock index_lock(index_mutex_);
  const auto found = indexes_.find(bank);
  if (found == indexes_.end()) {
    return;
  }
  found->second.sketches.remove(id);
  if (found->second.native) {
    found->second.native->remove(id);
  }
}

std::size_t NoteBank::notes() const {
  const std::shared_lock index_lock(index_mutex_);
  std::size_t total = 0;
  for (const auto& [name, indexes] : indexes_) {
    total += indexes.sketches.size();
  }
  return total;
}

bool NoteBank::is_read_only() const {
  const std::lock_guard store_lock(store_mutex_);
  return store_.is_read_only();
}

}  // namespace spel::memory
