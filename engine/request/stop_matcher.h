// Finds stop strings in a growing text, across token borders.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace spel::engine {

/// Feed the output's bytes in order. The first stop string to be completed ends the text before it;
/// of two completed by the same byte, the longer. Works on bytes, so the result does not depend on
/// where tokens begin, nor on how many arrive at once.
class StopMatcher {
 public:
  struct Match {
    std::size_t stop = 0;        ///< Index of the stop string.
    std::size_t text_bytes = 0;  ///< Bytes of text before it.
  };

  explicit StopMatcher(std::span<const std::string> stops);

  /// Returns the match that these bytes complete, if any. Not to be called again after a match.
  [[nodiscard]] std::optional<Match> feed(std::string_view bytes);

  /// The same, but what these bytes complete is part of the text: min_tokens asks for that. A stop
  /// string that begins in them and is completed by a later feed() still counts.
  void pass(std::string_view bytes);

  /// Bytes at the end of the text so far that are a proper prefix of some stop string.
  [[nodiscard]] std::size_t held_bytes() const;
  [[nodiscard]] std::size_t total_bytes() const noexcept { return total_; }

 private:
  void append(char byte);

  std::vector<std::string> stops_;
  std::string tail_;  ///< The last bytes of the text, as many as the longest stop string.
  std::size_t longest_ = 0;
  std::size_t total_ = 0;
};

}  // namespace spel::engine
