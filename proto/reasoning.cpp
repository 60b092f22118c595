#include "proto/reasoning.h"

#include <algorithm>
#include <utility>

namespace spel::proto {

namespace {

constexpr std::string_view kLineEnds = "\n\r";
constexpr std::string_view kBlanks = " \t\n\r";

/// Bytes at the end of `text` that may be the beginning of `tag`, which is not in it.
std::size_t unfinished(std::string_view text, std::string_view tag) noexcept {
  std::size_t size = std::min(text.size(), tag.size() - 1);
  while (size > 0 && !text.ends_with(tag.substr(0, size))) {
    --size;
  }
  return size;
}

std::string_view without_line_ends(std::string_view text) noexcept {
  const std::size_t last = text.find_last_not_of(kLineEnds);
  return last == std::string_view::npos ? std::string_view() : text.substr(0, last + 1);
}

void drop_leading(std::string& text, std::string_view characters) {
  text.erase(0, std::min(text.find_first_not_of(characters), text.size()));
}

}  // namespace

ThoughtStart thought_after(std::string_view prompt) noexcept {
  const std::size_t last = prompt.find_last_not_of(kBlanks);
  if (last == std::string_view::npos) {
    return ThoughtStart::kPossible;
  }
  prompt = prompt.substr(0, last + 1);
  if (prompt.ends_with(kThinkOpen)) {
    return ThoughtStart::kOpen;
  }
  return prompt.ends_with(kThinkClose) ? ThoughtStart::kNone : ThoughtStart::kPossible;
}

ReasoningSplitter::ReasoningSplitter(ThoughtStart start)
    : place_(start == ThoughtStart::kNone   ? Place::kContent
             : start == ThoughtStart::kOpen ? Place::kThoughtStart
                                            : Place::kBefore) {}

ReasoningSplitter::Piece ReasoningSplitter::push(std::string_view text) {
  held_ += text;
  Piece piece;
  while (!held_.empty() && advance(piece)) {
  }
  return piece;
}

bool ReasoningSplitter::advance(Piece& piece) {
  switch (place_) {
    case Place::kBefore: {
      const std::size_t begin = held_.find_first_not_of(kBlanks);
      const std::string_view rest =
          begin == std::string::npos ? std::string_view() : std::string_view(held_).substr(begin);
      if (rest.starts_with(kThinkOpen)) {
        held_.erase(0, begin + kThinkOpen.size());
        reopened_ = true;
        place_ = Place::kThoughtStart;
        return true;
      }
      if (kThinkOpen.starts_with(rest)) {
        return false;
      }
      place_ = Place::kContent;
      return true;
    }
    case Place::kThoughtStart:
      drop_leading(held_, kLineEnds);
      if (!reopened_ && held_.starts_with(kThinkOpen)) {
        held_.erase(0, kThinkOpen.size());
        reopened_ = true;
        return true;
      }
      if (held_.empty() || (!reopened_ && kThinkOpen.starts_with(held_))) {
        return false;
      }
      place_ = Place::kThought;
      return true;
    case Place::kThought: {
      const std::size_t close = held_.find(kThinkClose);
      if (close != std::string::npos) {
        piece.reasoning += without_line_ends(std::string_view(held_).substr(0, close));
        held_.erase(0, close + kThinkClose.size());
        place_ = Place::kContentStart;
        return true;
      }
      // The line ends before a tag go with it.
      const std::string_view sure =
          std::string_view(held_).substr(0, held_.size() - unfinished(held_, kThinkClose));
      const std::string_view shown = without_line_ends(sure);
      piece.reasoning += shown;
      held_.erase(0, shown.size());
      return false;
    }
    case Place::kContentStart:
      drop_leading(held_, kLineEnds);
      if (held_.empty()) {
        return false;
      }
      place_ = Place::kContent;
      return true;
    case Place::kContent:
      piece.content += std::exchange(held_, {});
      return false;
  }
  return false;
}

ReasoningSplitter::Piece ReasoningSplitter::finish() {
  Piece piece;
  if (place_ == Place::kThought || place_ == Place::kThoughtStart) {
    piece.reasoning = without_line_ends(held_);
  } else {
    piece.content = held_;
  }
  held_.clear();
  return piece;
}

ThoughtMeter::ThoughtMeter(ThoughtStart start) : place_(start) {}

void ThoughtMeter::push(std::string_view token_bytes) {
  if (place_ == ThoughtStart::kOpen) {
    look_for_closing(token_bytes);
  } else if (place_ == ThoughtStart::kPossible) {
    look_for_opening(token_bytes);
  }
}

void ThoughtMeter::look_for_opening(std::string_view bytes) {
  tail_ += bytes;
  drop_leading(tail_, kBlanks);
  if (tail_.starts_with(kThinkOpen)) {
    place_ = ThoughtStart::kOpen;
    // What this token holds behind the tag is read; the token itself began outside.
    const std::string behind = std::exchange(tail_, {}).substr(kThinkOpen.size());
    look_for_closing(behind);
    tokens_ = 0;
    starts_.clear();
  } else if (!kThinkOpen.starts_with(tail_)) {
    place_ = ThoughtStart::kNone;
    tail_.clear();
  }
}

void ThoughtMeter::look_for_closing(std::string_view bytes) {
  ++tokens_;
  if (bytes.empty()) {
    return;
  }
  starts_.push_back(total_);
  if (starts_.size() > kThinkClose.size()) {
    starts_.pop_front();
  }
  tail_ += bytes;
  total_ += bytes.size();
  const std::size_t close = tail_.find(kThinkClose);
  if (close == std::string::npos) {
    tail_.erase(0, tail_.size() - unfinished(tail_, kThinkClose));
    return;
  }
  const std::size_t tag = total_ - tail_.size() + close;
  tokens_ -= static_cast<std::size_t>(std::count_if(
      starts_.begin(), starts_.end(), [tag](std::size_t start) { return start >= tag; }));
  place_ = ThoughtStart::kNone;
  tail_.clear();
  starts_.clear();
}

}  // namespace spel::proto
