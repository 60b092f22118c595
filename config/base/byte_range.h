// A part of a text by its bytes.
#pragma once

#include <cstddef>

namespace spel {

/// From `begin` up to, not including, `end`: offsets into a text that is known from elsewhere.
struct ByteRange {
  std::size_t begin = 0;
  std::size_t end = 0;

  friend bool operator==(const ByteRange&, const ByteRange&) = default;
};

}  // namespace spel
