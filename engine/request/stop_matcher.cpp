#include "engine/request/stop_matcher.h"

#include <algorithm>

namespace spel::engine {

StopMatcher::StopMatcher(std::span<const std::string> stops) : stops_(stops.begin(), stops.end()) {
  for (const std::string& stop : stops_) {
    longest_ = std::max(longest_, stop.size());
  }
  tail_.reserve(2 * longest_ + 1);
}

std::optional<StopMatcher::Match> StopMatcher::feed(std::string_view bytes) {
  if (longest_ == 0) {
    total_ += bytes.size();
    return std::nullopt;
  }
  for (const char byte : bytes) {
    append(byte);
    std::optional<Match> match;
    std::size_t match_size = 0;
    for (std::size_t i = 0; i < stops_.size(); ++i) {
      if (stops_[i].size() > match_size && tail_.ends_with(stops_[i])) {
        match_size = stops_[i].size();
        match = Match{i, total_ - match_size};
      }
    }
    if (match) {
      return match;
    }
  }
  return std::nullopt;
}

void StopMatcher::pass(std::string_view bytes) {
  if (longest_ == 0) {
    total_ += bytes.size();
    return;
  }
  for (const char byte : bytes) {
    append(byte);
  }
}

void StopMatcher::append(char byte) {
  if (tail_.size() >= 2 * longest_) {
    tail_.erase(0, longest_);
  }
  tail_.push_back(byte);
  ++total_;
}

std::size_t StopMatcher::held_bytes() const {
  std::size_t held = 0;
  const std::string_view tail(tail_);
  for (const std::string& stop : stops_) {
    const std::string_view text(stop);
    for (std::size_t n = std::min(stop.size() - 1, tail.size()); n > held; --n) {
      if (tail.ends_with(text.substr(0, n))) {
        held = n;
        break;
      }
    }
  }
  return held;
}

}  // namespace spel::engine
