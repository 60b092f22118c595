#include "engine/text/added_tokens.h"

#include <algorithm>
#include <utility>

namespace spel::engine {

void AddedTokens::add(std::string content, TokenId token) {
  first_bytes_[static_cast<unsigned char>(content.front())] = true;
  const auto at = std::ranges::upper_bound(
      tokens_, content.size(), std::ranges::greater(),
      [](const std::pair<std::string, TokenId>& other) { return other.first.size(); });
  tokens_.emplace(at, std::move(content), token);
}

std::optional<AddedTokens::Match> AddedTokens::find(std::string_view text, std::size_t from,
                                                    std::span<const ByteRange> foreign) const {
  for (std::size_t at = from; at < text.size(); ++at) {
    if (!first_bytes_[static_cast<unsigned char>(text[at])]) {
      continue;
    }
    // The first range that ends behind it: no added token may reach into it.
    const auto next = std::ranges::upper_bound(foreign, at, {}, &ByteRange::end);
    const std::size_t limit = next == foreign.end() ? text.size() : std::max(next->begin, at);
    const std::string_view ours = text.substr(at, limit - at);
    for (const auto& [content, token] : tokens_) {
      if (ours.starts_with(content)) {
        return Match{at, at + content.size(), token};
      }
    }
  }
  return std::nullopt;
}

}  // namespace spel::engine
