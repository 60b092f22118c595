#include "engine/text/byte_pairs.h"

#include <algorithm>
#include <bit>

namespace spel::engine {

MergeTable::MergeTable(std::size_t merges)
    : slots_(std::bit_ceil(std::max<std::size_t>(2 * merges, 16))) {}

std::uint64_t MergeTable::key(TokenId left, TokenId right) {
  return std::uint64_t{static_cast<std::uint32_t>(left)} << 32 | static_cast<std::uint32_t>(right);
}

std::size_t MergeTable::place(std::uint64_t pair) const {
  constexpr std::uint64_t kMix = 0x9E3779B97F4A7C15ULL;
  const std::size_t mask = slots_.size() - 1;
  std::size_t at = static_cast<std::size_t>((pair ^ pair >> 29) * kMix >> 20) & mask;
  while (slots_[at].pair != kEmpty && slots_[at].pair != pair) {
    at = (at + 1) & mask;
  }
  return at;
}

void MergeTable::add(TokenId left, TokenId right, Merge merge) {
  Slot& slot = slots_[place(key(left, right))];
  if (slot.pair == kEmpty) {
    slot = {key(left, right), merge};
  }
}

const MergeTable::Merge* MergeTable::find(TokenId left, TokenId right) const {
  const Slot& slot = slots_[place(key(left, right))];
  return slot.pair == kEmpty ? nullptr : &slot.merge;
}

void WordMerger::consider(std::uint32_t left, const MergeTable& merges) {
  const Symbol& symbol = symbols_[left];
  if (symbol.after == kNone) {
    return;
  }
  const TokenId right_token = symbols_[symbol.after].token;
  if (const MergeTable::Merge* merge = merges.find(symbol.token, right_token)) {
    heap_.push_back({merge->rank, left, symbol.after, symbol.token, right_token, merge->token});
  }
}

void WordMerger::merge(std::string_view word, const std::vector<TokenId>& byte_tokens,
                       const MergeTable& merges, std::vector<TokenId>& out) {
  symbols_.clear();
  heap_.clear();
  const auto count = static_cast<std::uint32_t>(word.size());
  for (std::uint32_t i = 0; i < count; ++i) {
    symbols_.push_back({byte_tokens[static_cast<unsigned char>(word[i])], i == 0 ? kNone : i - 1,
                        i + 1 == count ? kNone : i + 1});
  }
  for (std::uint32_t i = 0; i < count; ++i) {
    consider(i, merges);
  }
  const auto later = [](const Candidate& a, const Candidate& b) {
    return a.rank != b.rank ? a.rank > b.rank : a.left > b.left;
  };
  std::ranges::make_heap(heap_, later);
  while (!heap_.empty()) {
    std::ranges::pop_heap(heap_, later);
    const Candidate best = heap_.back();
    heap_.pop_back();
    Symbol& left = symbols_[best.left];
    if (left.token != best.left_token || left.after != best.right ||
        symbols_[best.right].token != best.right_token) {
      continue;
    }
    left.token = best.joined;
    left.after = symbols_[best.right].after;
    symbols_[best.right].token = kJoined;
    if (left.after != kNone) {
      symbols_[left.after].before = best.left;
    }
    for (const std::uint32_t changed : {left.before, best.left}) {
      if (changed != kNone) {
        const std::size_t size = heap_.size();
        consider(changed, merges);
        if (heap_.size() > size) {
          std::ranges::push_heap(heap_, later);
        }
      }
    }
  }
  for (std::uint32_t i = count == 0 ? kNone : 0; i != kNone; i = symbols_[i].after) {
    out.push_back(symbols_[i].token);
  }
}

}  // namespace spel::engine
