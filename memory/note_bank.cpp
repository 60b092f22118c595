#include "memory/note_bank.h"

#include <algorithm>
#include <unordered_map>
#include <utility>

#include "config/base/error.h"
#include "kernels/kernels.h"
#include "memory/match.h"
#include "memory/plausible.h"

namespace spel::memory {
namespace {

Error no_such_bank(std::string_view name) {
  return Error(ErrorCode::kNotFound, "there is no bank " + std::string(name));
}

/// What a likeness of keys adds to one of texts: enough to decide between notes that have as much
/// in common with the query, too little to put one of others' words first.
constexpr float kSumShare = 0.1F;

std::vector<Match> fuse(std::vector<Match> texts, std::span<const Match> sums, std::size_t top) {
  std::unordered_map<NoteId, std::size_t> places;
  for (std::size_t i = 0; i < texts.size(); ++i) {
    places[texts[i].id] = i;
  }
  for (const Match& sum : sums) {
    const float likeness = kSumShare * std::max(sum.score, 0.0F);
    if (const auto found = places.find(sum.id); found != places.end()) {
      texts[found->second].score += likeness;
    } else {
      texts.push_back({sum.id, likeness, sum.content});
    }
  }
  keep_best(texts, top);
  return texts;
}

}  // namespace

NoteBank::NoteBank(const kernels::Kernels& kernels, const std::filesystem::path& directory,
                   std::string model, const ChannelShape& shape, std::size_t vocab)
    : model_(std::move(model)),
      projection_(kernels, shape),
      vocab_(vocab),
      store_(directory, Store::Mode::kOwner),
      warnings_(store_.warnings()) {
  for (const BankInfo& bank : store_.bank_headers()) {
    if (bank.model == model_ && bank.shape == shape) {
      load(bank);
    }
  }
}

void NoteBank::load(const BankInfo& bank) {
  Indexes& indexes = indexes_.try_emplace(bank.name, projection_.kernels()).first->second;
  const auto damaged = store_.visit_sketches(bank.name, vocab_, [&](const Store::IndexRow& row) {
    const std::uint64_t content = content_of(row.tokens);
    indexes.texts.add(row.id, content, row.text);
    if (!row.vector.empty()) {
      indexes.sketches.add(row.id, content, row.vector);
    }
  });
  if (damaged.empty()) {
    return;
  }
  indexes.damaged.insert(damaged.begin(), damaged.end());
  warnings_.push_back(std::to_string(damaged.size()) + " notes of bank " + bank.name +
                      " are damaged and left out, the first of them note " +
                      std::to_string(damaged.front()) +
                      "; delete them, or put a copy of the store in its place");
}

std::vector<NoteId> NoteBank::append(std::string_view bank, std::span<const NoteDraft> notes) {
  for (const NoteDraft& note : notes) {
    if (const std::string fault = note_fault(note, projection_.shape(), vocab_); !fault.empty()) {
      throw Error(ErrorCode::kInternal,
                  "a note of bank " + std::string(bank) + " cannot be: " + fault);
    }
  }
  const std::lock_guard store_lock(store_mutex_);
  std::vector<NoteId> ids = store_.append(bank, model_, projection_.shape(), notes, vocab_);
  const std::unique_lock index_lock(index_mutex_);
  Indexes& indexes = indexes_.try_emplace(std::string(bank), projection_.kernels()).first->second;
  for (std::size_t i = 0; i < ids.size(); ++i) {
    const std::uint64_t content = content_of(notes[i].tokens);
    indexes.texts.add(ids[i], content, notes[i].text);
    if (notes[i].sketch.empty()) {
      continue;
    }
    indexes.sketches.add(ids[i], content, notes[i].sketch);
    if (indexes.native) {
      indexes.native->add(ids[i], content, notes[i].coordinates);
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

std::vector<float> NoteBank::sketch_of(std::span<const float> keys) const {
  const std::size_t width = projection_.shape().width();
  const std::size_t tokens = std::min(keys.size() / width, kQueryTokens);
  const auto last = keys.last(tokens * width);
  std::vector<float> sketches(tokens * kSketchCoordinates);
  for (std::size_t t = 0; t < tokens; ++t) {
    projection_.sketch(last.subspan(t * width, width),
                       std::span(sketches).subspan(t * kSketchCoordinates, kSketchCoordinates));
  }
  return sketches;
}

std::vector<Match> NoteBank::search(std::string_view bank, const CapturedQuery& query,
                                    Ranker ranker, std::size_t top) {
  if (ranker == Ranker::kNative || ranker == Ranker::kVotes) {
    return search_native(bank, query, ranker, top);
  }
  const std::vector<float> sketches =
      ranker == Ranker::kText ? std::vector<float>() : sketch_of(query.keys);
  const std::shared_lock index_lock(index_mutex_);
  const auto found = indexes_.find(bank);
  if (found == indexes_.end()) {
    return {};
  }
  const Indexes& indexes = found->second;
  if (ranker == Ranker::kSum) {
    return indexes.sketches.search(sketches, top);
  }
  if (ranker == Ranker::kText) {
    return indexes.texts.search(query.text, top);
  }
  // Both deep, so that a note far down in one may still be the best of both.
  return fuse(indexes.texts.search(query.text, std::max(top, TextIndex::kRerank)),
              indexes.sketches.search(sketches, std::max(top, SketchIndex::kRerank)), top);
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
    projection_.kernels().add(total.data(), one.data(), total.size());
  }
  const std::lock_guard store_lock(store_mutex_);
  const std::unique_lock index_lock(index_mutex_);
  const auto found = indexes_.find(bank);
  if (found == indexes_.end()) {
    return {};
  }
  std::optional<NativeIndex>& native = found->second.native;
  if (!native) {
    NativeIndex built(projection_.kernels(), shape.channels);
    const auto damaged = store_.visit_coordinates(bank, vocab_, [&](const Store::IndexRow& row) {
      built.add(row.id, content_of(row.tokens), row.vector);
    });
    found->second.damaged.insert(damaged.begin(), damaged.end());
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
  // A few more than asked for: a note deleted, or damaged, since the index was built is left out.
  constexpr std::size_t kSpare = 16;
  const std::vector<Match> matches = search(bank, query, ranker, top == 0 ? 0 : top + kSpare);
  std::vector<Note> notes;
  const std::lock_guard store_lock(store_mutex_);
  std::vector<NoteId> ids;
  for (std::span<const Match> left = matches; !left.empty() && notes.size() < top;) {
    const auto some = left.first(std::min(top - notes.size(), left.size()));
    left = left.subspan(some.size());
    ids.resize(some.size());
    std::transform(some.begin(), some.end(), ids.begin(), [](const Match& m) { return m.id; });
    for (Note& note : store_.find_notes(bank, ids)) {
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
  std::vector<BankInfo> banks = store_.banks();
  const std::shared_lock index_lock(index_mutex_);
  for (BankInfo& bank : banks) {
    const auto found = indexes_.find(bank.name);
    bank.damaged = found == indexes_.end() ? 0 : found->second.damaged.size();
  }
  return banks;
}

BankInfo NoteBank::bank(std::string_view name) {
  const std::lock_guard store_lock(store_mutex_);
  auto info = store_.find_bank(name);
  if (!info) {
    throw no_such_bank(name);
  }
  const std::shared_lock index_lock(index_mutex_);
  const auto found = indexes_.find(name);
  info->damaged = found == indexes_.end() ? 0 : found->second.damaged.size();
  return std::move(*info);
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
  found->second.texts.remove(id);
  found->second.sketches.remove(id);
  found->second.damaged.erase(id);
  if (found->second.native) {
    found->second.native->remove(id);
  }
}

std::size_t NoteBank::notes() const {
  const std::shared_lock index_lock(index_mutex_);
  std::size_t total = 0;
  for (const auto& [name, indexes] : indexes_) {
    total += indexes.texts.size();
  }
  return total;
}

std::size_t NoteBank::damaged() const {
  const std::shared_lock index_lock(index_mutex_);
  std::size_t total = 0;
  for (const auto& [name, indexes] : indexes_) {
    total += indexes.damaged.size();
  }
  return total;
}

std::string NoteBank::read_only_because() const {
  const std::lock_guard store_lock(store_mutex_);
  return store_.read_only_because();
}

}  // namespace spel::memory
