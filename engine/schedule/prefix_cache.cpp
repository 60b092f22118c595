#include "engine/schedule/prefix_cache.h"

#include <algorithm>
#include <utility>

namespace spel::engine {
namespace {

// Below this, prefilling again is as cheap as the copy.
constexpr std::size_t kMinTokens = 32;

}  // namespace

PrefixCache::PrefixCache(const CausalModel& model, std::size_t entries) : entries_(entries) {
  for (Entry& entry : entries_) {
    entry.state = model.make_state();
    entry.tokens.reserve(model.max_seq());
    entry.logits.reserve(model.vocab_size());
  }
}

PrefixCache::Hit PrefixCache::find(std::span<const TokenId> prompt) {
  Entry* best = nullptr;
  for (Entry& entry : entries_) {
    const std::size_t n = entry.tokens.size();
    if (n == 0 || n > prompt.size() || (n == prompt.size() && entry.logits.empty()) ||
        (best != nullptr && n <= best->tokens.size())) {
      continue;
    }
    if (std::equal(entry.tokens.begin(), entry.tokens.end(), prompt.begin())) {
      best = &entry;
    }
  }
  if (best == nullptr) {
    return {};
  }
  best->last_use = ++clock_;
  const bool whole = best->tokens.size() == prompt.size();
  return {best->state.get(),
          whole ? std::span<const float>(best->logits) : std::span<const float>()};
}

PrefixCache::Entry* PrefixCache::place_for(std::span<const TokenId> tokens, bool& is_new) {
  if (entries_.empty() || tokens.size() < kMinTokens) {
    return nullptr;
  }
  for (Entry& entry : entries_) {
    if (std::equal(entry.tokens.begin(), entry.tokens.end(), tokens.begin(), tokens.end())) {
      entry.last_use = ++clock_;
      is_new = false;
      return &entry;
    }
  }
  Entry& oldest =
      *std::min_element(entries_.begin(), entries_.end(),
                        [](const Entry& a, const Entry& b) { return a.last_use < b.last_use; });
  oldest.tokens.assign(tokens.begin(), tokens.end());
  oldest.logits.clear();
  oldest.last_use = ++clock_;
  is_new = true;
  return &oldest;
}

void PrefixCache::store_copy(std::span<const TokenId> tokens, const SequenceState& state,
                             std::span<const float> logits) {
  bool is_new = false;
  if (Entry* entry = place_for(tokens, is_new)) {
    if (is_new) {
      entry->state->copy_from(state);
    }
    entry->logits.assign(logits.begin(), logits.end());
  }
}

void PrefixCache::store_swap(std::span<const TokenId> tokens,
                             std::unique_ptr<SequenceState>& state) {
  bool is_new = false;
  Entry* entry = place_for(tokens, is_new);
  if (is_new) {
    std::swap(entry->state, state);
  }
}

std::size_t PrefixCache::used() const {
  return static_cast<std::size_t>(std::count_if(
      entries_.begin(), entries_.end(), [](const Entry& entry) { return !entry.tokens.empty(); }));
}

std::size_t PrefixCache::bytes() const {
  std::size_t total = 0;
  for (const Entry& entry : entries_) {
    total += entry.state->bytes();
  }
  return total;
}

}  // namespace spel::engine
