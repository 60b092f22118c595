#include "engine/sample/token_mask.h"

#include <bit>
#include <limits>

namespace spel::engine {

TokenMask::TokenMask(std::size_t vocab_size)
    : vocab_size_(vocab_size),
      end_(vocab_size),
      allowed_(vocab_size),
      forbidden_((vocab_size + 63) / 64) {}

void TokenMask::forbid(std::size_t id) {
  if (allows(static_cast<TokenId>(id))) {
    forbidden_[id / 64] |= std::uint64_t{1} << (id % 64);
    --allowed_;
  }
  while (end_ > 0 && !allows(static_cast<TokenId>(end_ - 1))) {
    --end_;
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
