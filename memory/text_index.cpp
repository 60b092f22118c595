#include "memory/text_index.h"

#include <algorithm>
#include <bit>
#include <cassert>
#include <cmath>
#include <cstring>
#include <span>
#include <utility>

namespace spel::memory {
namespace {

constexpr std::size_t kGram = 3;
constexpr std::size_t kGramsMax = TextIndex::kQueryBytes - kGram + 1;
constexpr std::size_t kWords = 2;
static_assert(kGramsMax <= kWords * 64, "one bit for each gram of a query");

/// A gram so many bytes before the query's end weighs half of the last one …
constexpr float kHalfWeightBytes = 24.0F;
/// … and none less than this.
constexpr float kFarWeight = 0.2F;
/// Bytes after the end of the query that a note should have: room for the answer.
constexpr std::size_t kAnswerBytes = 16;
constexpr float kAnswerShare = 0.25F;

char fold(char c) {
  if (c >= 'A' && c <= 'Z') {
    return static_cast<char>(c - 'A' + 'a');
  }
  return c == '\n' || c == '\t' || c == '\r' ? ' ' : c;
}

/// Which of the query's grams a note holds.
using Held = std::array<std::uint64_t, kWords>;

/// The query cut into grams, each once, with a small hash table over them.
class Grams {
 public:
  explicit Grams(std::string_view query) : size_(std::min(query.size(), kGram)) {
    table_.fill(kNone);
    mask_ = static_cast<std::uint32_t>((std::uint64_t{1} << (8 * size_)) - 1);
    for (std::size_t at = 0; at + size_ <= query.size(); ++at) {
      std::uint32_t gram = 0;
      std::memcpy(&gram, query.data() + at, size_);
      std::size_t place = slot(gram);
      while (table_[place] != kNone && grams_[table_[place]] != gram) {
        place = (place + 1) % kTable;
      }
      if (table_[place] == kNone) {
        table_[place] = static_cast<std::uint8_t>(count_);
        grams_[count_++] = gram;
      }
      of_place_.push_back(table_[place]);
    }
  }

  [[nodiscard]] std::size_t count() const noexcept { return count_; }
  [[nodiscard]] std::size_t size() const noexcept { return size_; }
  /// By place in the query.
  [[nodiscard]] std::span<const std::uint8_t> places() const noexcept { return of_place_; }

  /// `text` may be read three bytes beyond its end.
  [[nodiscard]] Held held_by(std::string_view text) const noexcept {
    Held held{};
    for (std::size_t at = 0; at + size_ <= text.size(); ++at) {
      std::uint32_t gram = 0;
      std::memcpy(&gram, text.data() + at, sizeof(gram));
      gram &= mask_;
      for (std::size_t place = slot(gram); table_[place] != kNone; place = (place + 1) % kTable) {
        const std::uint8_t found = table_[place];
        if (grams_[found] == gram) {
          held[found / 64] |= std::uint64_t{1} << (found % 64);
          break;
        }
      }
    }
    return held;
  }

 private:
  /// A sparse table: most of a text's grams are not in the query, and are done with after one look.
  static constexpr std::size_t kTable = 4096;
  static constexpr std::uint8_t kNone = 0xff;
  static_assert(kGramsMax < kNone);

  static std::size_t slot(std::uint32_t gram) noexcept {
    return (gram * 0x9e3779b1U) >> (32U - static_cast<unsigned>(std::countr_zero(kTable)));
  }

  std::size_t size_;
  std::uint32_t mask_;
  std::size_t count_ = 0;
  std::array<std::uint32_t, kGramsMax> grams_{};
  std::array<std::uint8_t, kTable> table_{};
  std::vector<std::uint8_t> of_place_;
};

/// Sums over set bits, a byte at a time.
class BitSums {
 public:
  explicit BitSums(std::span<const float> weights) {
    for (std::size_t byte = 0; byte < sums_.size(); ++byte) {
      for (std::size_t bits = 1; bits < sums_[byte].size(); ++bits) {
        const std::size_t rest = bits & (bits - 1);
        const auto lowest = static_cast<std::size_t>(std::countr_zero(bits));
        const std::size_t at = byte * 8 + lowest;
        sums_[byte][bits] = sums_[byte][rest] + (at < weights.size() ? weights[at] : 0.0F);
      }
    }
  }
  [[nodiscard]] float of(const Held& held) const noexcept {
    float sum = 0.0F;
    for (std::size_t byte = 0; byte < sums_.size(); ++byte) {
      sum += sums_[byte][(held[byte / 8] >> (byte % 8 * 8)) & 0xffU];
    }
    return sum;
  }

 private:
  std::array<std::array<float, 256>, kWords * 8> sums_{};
};

/// The rarer, the more; the same form as BM25's.
float rarity(std::size_t holders, std::size_t notes) {
  const auto with = static_cast<float>(holders);
  const auto all = static_cast<float>(notes);
  return std::log(1.0F + (all - with + 0.5F) / (with + 0.5F));
}

/// The longest end of the query that stands in `text` with something after it.
struct Run {
  std::size_t bytes = 0;
  std::size_t room = 0;  ///< Bytes after it.
};

Run find_run(std::string_view text, std::string_view query) {
  Run best;
  for (std::size_t end = text.size(); end-- > 1;) {
    std::size_t bytes = 0;
    while (bytes < end && bytes < query.size() &&
           text[end - 1 - bytes] == query[query.size() - 1 - bytes]) {
      ++bytes;
    }
    if (bytes > best.bytes) {
      best = {bytes, text.size() - end};
    }
  }
  return best;
}

}  // namespace

void TextIndex::place(Entry& note, std::string_view text) {
  if (page_used_ + text.size() > kPageBytes) {
    pages_.push_back(std::make_unique<Page>());
    page_used_ = 0;
  }
  note.page = static_cast<std::uint32_t>(pages_.size() - 1);
  note.offset = static_cast<std::uint16_t>(page_used_);
  note.size = static_cast<std::uint16_t>(text.size());
  std::transform(text.begin(), text.end(), pages_.back()->data() + page_used_, &fold);
  page_used_ += text.size();
}

void TextIndex::add(NoteId id, std::uint64_t content, std::string_view text) {
  assert(!slots_.contains(id));
  Entry note{id, content, 0, 0, 0};
  place(note, text.substr(0, kTextBytesMax));
  live_bytes_ += note.size;
  slots_[id] = notes_.size();
  notes_.push_back(note);
}

void TextIndex::remove(NoteId id) {
  const auto found = slots_.find(id);
  if (found == slots_.end()) {
    return;
  }
  const std::size_t slot = found->second;
  dead_bytes_ += notes_[slot].size;
  live_bytes_ -= notes_[slot].size;
  notes_[slot] = notes_.back();
  slots_[notes_[slot].id] = slot;
  slots_.erase(id);
  notes_.pop_back();
  if (dead_bytes_ > live_bytes_ + kPageBytes) {
    compact();
  }
}

std::size_t TextIndex::bytes() const noexcept {
  constexpr std::size_t kNode = 4 * sizeof(void*);
  return pages_.size() * sizeof(Page) + notes_.capacity() * sizeof(Entry) +
         slots_.bucket_count() * sizeof(void*) + slots_.size() * kNode;
}

void TextIndex::compact() {
  const std::vector<std::unique_ptr<Page>> old = std::exchange(pages_, {});
  page_used_ = kPageBytes;
  dead_bytes_ = 0;
  for (Entry& note : notes_) {
    place(note, {old[note.page]->data() + note.offset, note.size});
  }
}

std::vector<Match> TextIndex::search(std::string_view query, std::size_t top) const {
  std::string tail(query.substr(query.size() - std::min(query.size(), kQueryBytes)));
  std::transform(tail.begin(), tail.end(), tail.begin(), &fold);
  if (tail.empty() || top == 0 || notes_.empty()) {
    return {};
  }
  const Grams grams(tail);
  std::vector<Held> held(notes_.size());
  std::array<std::size_t, kGramsMax> holders{};
  for (std::size_t i = 0; i < notes_.size(); ++i) {
    held[i] = grams.held_by(text_of(notes_[i]));
    for (std::size_t word = 0; word < kWords; ++word) {
      for (std::uint64_t bits = held[i][word]; bits != 0; bits &= bits - 1) {
        ++holders[word * 64 + static_cast<std::size_t>(std::countr_zero(bits))];
      }
    }
  }

  // Weights by gram for the scattered pieces, and summed from the end for the one piece.
  const auto places = grams.places();
  std::array<float, kGramsMax> weights{};
  std::vector<float> of_run(places.size() + 1);
  for (std::size_t back = 0; back < places.size(); ++back) {
    const std::uint8_t gram = places[places.size() - 1 - back];
    const float nearness =
        std::max(kFarWeight, 1.0F / (1.0F + static_cast<float>(back) / kHalfWeightBytes));
    const float weight = nearness * rarity(holders[gram], notes_.size());
    weights[gram] = std::max(weights[gram], weight);
    of_run[back + 1] = of_run[back] + weight;
  }
  float all = 0.0F;
  for (std::size_t gram = 0; gram < grams.count(); ++gram) {
    all += weights[gram];
  }

  const BitSums sums{std::span<const float>(weights).first(grams.count())};
  std::vector<Match> matches;
  for (std::size_t i = 0; i < notes_.size(); ++i) {
    if (held[i] != Held{}) {
      matches.push_back({notes_[i].id, sums.of(held[i]) / all, notes_[i].content});
    }
  }
  keep_best(matches, std::max(kRerank, top));
  for (Match& match : matches) {
    const Run run = find_run(text_of(notes_[slots_.at(match.id)]), tail);
    if (run.bytes >= grams.size()) {
      const float room =
          static_cast<float>(std::min(run.room, kAnswerBytes)) / static_cast<float>(kAnswerBytes);
      match.score += of_run[run.bytes - grams.size() + 1] / of_run.back() *
                     (1.0F - kAnswerShare + kAnswerShare * room);
    }
    match.score /= 2.0F;
  }
  keep_best(matches, top);
  return matches;
}

}  // namespace spel::memory
