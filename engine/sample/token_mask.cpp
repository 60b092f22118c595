#include "engine/sample/token_mask.h"

#include <algorithm>
#include <bit>
#include <limits>

namespace spel::engine {

TokenMask::TokenMask(std::size_t vocab_size)
    : vocab_size_(vocab_size), end_(vocab_size), forbidden_((vocab_size + 63) / 64) {}

void TokenMask::forbid(std::size_t first, std::size_t end) {
  for (std::size_t id = first; id < end; ++id) {
    forbidden_[id / 64] |= std::uint64_t{1} << (id % 64);
  }
  while (end_ > 0 && !allows(static_cast<TokenId>(end_ - 1))) {
    --end_;
  }
  has_holes_ = false;
  for (std::size_t id = 0; id < end_ && !has_holes_; ++id) {
    has_holes_ = !allows(static_cast<TokenId>(id));
  }
}

void TokenMask::blank(std::span<float> row) const {
  for (std::size_t word = 0; word * 64 < row.size(); ++word) {
    for (std::uint64_t left = forbidden_[word]; left != 0; left &= left - 1) {
      const std::size_t id = word * 64 + static_cast<std::size_t>(std::countr_zero(left));
      if (id >= row.size()) {
        return;
      }
      row[id] = std::numeric_limits<float>::quiet_NaN();
    }
  }
}

}  // namespace spel::engine
