// A text that knows which of its bytes somebody else wrote.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "config/base/byte_range.h"

namespace spel::engine {

/// What came with a request is foreign, what a template's author wrote is not. The mark goes with
/// the bytes through everything that is done to them. Not thread-safe.
struct MarkedText {
  std::string text;
  std::vector<ByteRange> foreign;  ///< In order; none is empty, touches or overlaps another.

  MarkedText() = default;
  MarkedText(std::string of, bool is_foreign);

  void append(std::string_view more, bool is_foreign);
  void append(const MarkedText& more);
  /// Bytes [begin, end) of `more`.
  void append(const MarkedText& more, std::size_t begin, std::size_t end);
  [[nodiscard]] MarkedText part(std::size_t begin, std::size_t end) const;
  [[nodiscard]] bool is_foreign(std::size_t byte) const;

  friend bool operator==(const MarkedText&, const MarkedText&) = default;
};

}  // namespace spel::engine
