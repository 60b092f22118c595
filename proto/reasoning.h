// What a model thinks before it answers, told from the answer: <think> … </think> in its text.
#pragma once

#include <cstddef>
#include <deque>
#include <string>
#include <string_view>

namespace spel::proto {

inline constexpr std::string_view kThinkOpen = "<think>";
inline constexpr std::string_view kThinkClose = "</think>";

/// Where a model's text begins, as its prompt leaves it.
enum class ThoughtStart {
  kNone,      ///< Outside: the thought is over, or nobody looks for one. All is content.
  kPossible,  ///< A thought may come first, after blanks; anything else is content to the end.
  kOpen,      ///< Inside: the prompt has opened one.
};

/// How `prompt` leaves the text that follows it: by its last tag, if nothing but blanks is behind
/// it. Text that came with the request must not be in `prompt`: a client's "<think>" opens nothing.
[[nodiscard]] ThoughtStart thought_after(std::string_view prompt) noexcept;

/// Splits a text that comes in pieces. The joined pieces do not depend on how it was cut: what may
/// be the beginning of a tag waits. Line ends around a thought belong to the tags, as the templates
/// of such models have it (they take them off again in the next turn), so they are in neither part;
/// all else is kept. Only the first closing tag counts. An opening tag that the model repeats at
/// the beginning of a thought is dropped. Not thread-safe; one for each choice.
class ReasoningSplitter {
 public:
  explicit ReasoningSplitter(ThoughtStart start);

  struct Piece {
    std::string reasoning;
    std::string content;
  };
  [[nodiscard]] Piece push(std::string_view text);
  /// The rest. A thought that was not closed is one to its end.
  [[nodiscard]] Piece finish();

 private:
  enum class Place { kBefore, kThoughtStart, kThought, kContentStart, kContent };

  /// One step with what is held; false when it needs more text.
  [[nodiscard]] bool advance(Piece& piece);

  Place place_;
  bool reopened_ = false;  ///< The thought's own opening tag has been seen.
  std::string held_;       ///< Text not given out yet.
};

/// Counts the tokens of a thought: those that begin in it, its tags not counted. The same automaton
/// over the bytes of tokens, so that a count exists while text still waits for its characters.
class ThoughtMeter {
 public:
  explicit ThoughtMeter(ThoughtStart start);

  void push(std::string_view token_bytes);
  [[nodiscard]] std::size_t tokens() const noexcept { return tokens_; }

 private:
  void look_for_opening(std::string_view bytes);
  void look_for_closing(std::string_view bytes);

  ThoughtStart place_;
  std::string tail_;       ///< Bytes that may belong to a tag.
  std::size_t total_ = 0;  ///< Bytes pushed since the thought began.
  std::size_t tokens_ = 0;
  std::deque<std::size_t> starts_;  ///< Of the last tokens counted, as many as a tag may have.
};

}  // namespace spel::proto
