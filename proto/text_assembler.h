// Token bytes to text a client may see: whole characters only, nothing that a stop string may take
// back.
#pragma once

#include <cstddef>
#include <deque>
#include <string>
#include <string_view>

#include "config/base/utf8.h"

namespace spel::proto {

/// Not thread-safe; one for each choice. The pieces of all calls joined are to_valid_utf8() of the
/// output's first text_bytes bytes, however the output was cut into tokens.
class TextAssembler {
 public:
  struct Piece {
    std::string text;        ///< Valid UTF-8, may be empty.
    std::size_t tokens = 0;  ///< So many more tokens, oldest first, now belong to the text.
  };

  /// The next token. `held_bytes` at the end of the output so far must not be shown yet.
  [[nodiscard]] Piece push(std::string_view token_bytes, std::size_t held_bytes);

  /// The end: the output is its first `text_bytes` bytes. A token belongs to it if its first byte
  /// does; one without bytes if nothing was cut.
  [[nodiscard]] Piece finish(std::size_t text_bytes);

  /// Where the token pushed last starts in the text, in code points. Add the echoed prompt's.
  [[nodiscard]] std::size_t last_token_offset() const noexcept { return last_token_offset_; }

 private:
  [[nodiscard]] std::string take(std::size_t limit, bool at_end);

  std::string pending_;             ///< Bytes not shown yet …
  std::size_t shown_ = 0;           ///< … which follow this many shown.
  std::size_t total_ = 0;           ///< Bytes pushed.
  std::deque<std::size_t> starts_;  ///< First byte of each token not yet given out.
  std::string partial_;             ///< Unfinished character at the end of the output.
  std::size_t code_points_ = 0;     ///< Before it.
  std::size_t last_token_offset_ = 0;
};

using spel::is_valid_utf8;
/// `bytes` with each maximal invalid part replaced by U+FFFD.
[[nodiscard]] std::string to_valid_utf8(std::string_view bytes);
/// Code points of valid UTF-8.
[[nodiscard]] std::size_t count_code_points(std::string_view text) noexcept;

}  // namespace spel::proto
