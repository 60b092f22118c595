#include "engine/text/added_tokens.h"

#include <algorithm>
#include <utility>

namespace spel::engine {

void AddedTokens::add(std::string content, TokenId token) {
  first_bytes_[static_cast<unsigned char>(content.front())] = true;
  const auto at = std::ranges::upper_bound(tokens_, content, {}, &Token::first);
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
    if (const Token* match = longest(text.substr(at, limit - at))) {
      return Match{at, at + match->first.size(), match->second};
    }
  }
  return std::nullopt;
}

const AddedTokens::Token* AddedTokens::longest(std::string_view text) const {
  const Token* found = nullptr;
  std::span<const Token> alike(tokens_);  // Those that begin as the text does, so far.
  for (std::size_t depth = 0; depth < text.size(); ++depth) {
    const auto byte_there = [depth](const Token& token) {
      return depth < token.first.size() ? static_cast<unsigned char>(token.first[depth]) : -1;
    };
    const auto next = std::ranges::equal_range(
        alike, static_cast<int>(static_cast<unsigned char>(text[depth])), {}, byte_there);
    alike = std::span<const Token>(next.begin(), next.end());
    if (alike.empty()) {
      break;
    }
    if (alike.front().first.size() == depth + 1) {
      found = &alike.front();
    }
  }
  return found;
}

}  // namespace spel::engine
