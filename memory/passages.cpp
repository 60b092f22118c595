#include "memory/passages.h"

#include <algorithm>
#include <string_view>
#include <utility>

namespace spel::memory {
namespace {

/// How good a place to cut the end of a token is.
enum class Break : std::uint8_t { kNone, kWord, kClause, kSentence };

bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\r' || c == '\n'; }

/// The best break inside or after a token: what it ends with, and what came before its blanks.
std::vector<Break> find_breaks(std::span<const TokenId> text, const TokenBytes& bytes) {
  constexpr std::string_view kSentenceEnds = ".!?;";
  constexpr std::string_view kClauseEnds = ",:)";
  std::vector<Break> breaks(text.size(), Break::kNone);
  char before_blanks = ' ';
  bool line_ended = false;
  for (std::size_t t = 0; t < text.size(); ++t) {
    const std::string token = bytes(text[t]);
    // Many vocabularies put the blank at a word's beginning: the break is before that word.
    const bool begins_blank = !token.empty() && is_blank(token.front());
    bool ends_blank = false;
    Break before = Break::kNone;
    for (const char c : token) {
      ends_blank = is_blank(c);
      line_ended = ends_blank && (line_ended || c == '\n');
      if (!ends_blank) {
        before_blanks = c;
      } else {
        const bool sentence =
            line_ended || kSentenceEnds.find(before_blanks) != std::string_view::npos;
        const bool clause = kClauseEnds.find(before_blanks) != std::string_view::npos;
        before = sentence ? Break::kSentence : clause ? Break::kClause : Break::kWord;
      }
    }
    if (ends_blank) {
      breaks[t] = before;
    } else if (begins_blank && t > 0) {
      breaks[t - 1] = std::max(breaks[t - 1], before);
    }
  }
  if (!breaks.empty()) {
    breaks.back() = Break::kSentence;
  }
  return breaks;
}

/// The end of the last token in [from, to) that breaks at least so; 0 if there is none.
std::size_t last_break(const std::vector<Break>& breaks, std::size_t from, std::size_t to,
                       Break at_least) {
  for (std::size_t end = std::min(to, breaks.size()); end > from; --end) {
    if (breaks[end - 1] >= at_least) {
      return end;
    }
  }
  return 0;
}

std::size_t first_break(const std::vector<Break>& breaks, std::size_t from, std::size_t to) {
  const std::size_t end = std::min(to, breaks.size());
  for (std::size_t t = from; t < end; ++t) {
    if (breaks[t] == Break::kSentence) {
      return t + 1;
    }
  }
  return 0;
}

/// Where the window after one that begins at `at` begins: at a clause, else a word, else anywhere.
std::size_t next_window(const std::vector<Break>& breaks, std::size_t at) {
  const std::size_t half = at + kWindowTokens / 2;
  const std::size_t quarter = at + kWindowTokens / 4;
  for (const Break wanted : {Break::kClause, Break::kWord}) {
    if (const std::size_t end = last_break(breaks, quarter, half, wanted); end > 0) {
      return end;
    }
  }
  return half;
}

}  // namespace

std::vector<Passage> split_passages(std::span<const TokenId> text, const TokenBytes& bytes) {
  std::vector<Passage> passages;
  const std::vector<Break> breaks = find_breaks(text, bytes);
  for (std::size_t at = 0; at < text.size();) {
    std::size_t end = last_break(breaks, at, at + kPassageTokens, Break::kSentence);
    if (end == 0) {
      end = first_break(breaks, at + kPassageTokens, at + kPassageTokensMax);
    }
    const bool whole = end > 0;
    if (!whole) {
      end = at + kWindowTokens;
    }
    passages.push_back({at, end - at});
    at = whole ? end : next_window(breaks, at);
  }
  return passages;
}

std::uint64_t add_passages(std::span<const TokenId> text, std::uint64_t first, bool last,
                           const TokenBytes& bytes, std::vector<NoteDraft>& notes) {
  std::vector<Passage> passages;
  if (last && first == 0 && text.size() <= kPassageTokensMax) {
    passages.push_back({0, text.size()});
  } else {
    passages = split_passages(text, bytes);
  }
  std::uint64_t next = first + text.size();
  if (!last && !passages.empty()) {
    next = first + passages.back().start;
    passages.pop_back();
  }
  // The starts of the notes there are: those that could hold a passage begin just before it.
  std::vector<Passage> kept;
  std::size_t longest = 0;
  for (const NoteDraft& note : notes) {
    kept.push_back({note.start, note.tokens.size()});
    longest = std::max(longest, note.tokens.size());
  }
  std::sort(kept.begin(), kept.end(),
            [](const Passage& a, const Passage& b) { return a.start < b.start; });
  for (const Passage& passage : passages) {
    const std::uint64_t start = first + passage.start;
    const std::uint64_t end = start + passage.tokens;
    auto note =
        std::lower_bound(kept.begin(), kept.end(), end - std::min<std::uint64_t>(end, longest),
                         [](const Passage& p, std::uint64_t place) { return p.start < place; });
    while (note != kept.end() && note->start <= start && note->start + note->tokens < end) {
      ++note;
    }
    if (note != kept.end() && note->start <= start) {
      continue;
    }
    NoteDraft added;
    added.start = start;
    const auto tokens = text.subspan(passage.start, passage.tokens);
    added.tokens.assign(tokens.begin(), tokens.end());
    notes.push_back(std::move(added));
  }
  return next;
}

}  // namespace spel::memory
