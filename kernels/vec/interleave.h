// Re-laying activation words, for the sets without a faster way of their own.
#pragma once

#include <cstddef>

namespace spel::kernels {
namespace {

/// out[word][row] = in[row][word] for `words` words of `rows` rows `stride` bytes apart; the rows
/// of one word are `pitch` words from those of the next.
inline void interleave_words(const unsigned char* in, std::size_t stride, std::size_t rows,
                             std::size_t words, std::size_t pitch, unsigned char* out) {
  for (std::size_t word = 0; word < words; ++word) {
    for (std::size_t row = 0; row < rows; ++row) {
      __builtin_memcpy(out + 4 * (word * pitch + row), in + row * stride + 4 * word, 4);
    }
  }
}

}  // namespace
}  // namespace spel::kernels
