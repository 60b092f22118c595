#include "server/tools/haystack.h"

#include <algorithm>
#include <array>
#include <random>
#include <string_view>

#include "config/base/error.h"

namespace spel::server::tools {
namespace {

constexpr std::array<std::string_view, 64> kWords{
    "the",    "river", "stone",   "walked", "under",   "morning", "light",  "table",
    "house",  "green", "before",  "window", "letter",  "small",   "garden", "answer",
    "winter", "road",  "carried", "quiet",  "friend",  "evening", "paper",  "mountain",
    "water",  "again", "people",  "story",  "market",  "silver",  "found",  "between",
    "summer", "field", "music",   "old",    "captain", "bread",   "north",  "village",
    "spoke",  "never", "forest",  "bright", "early",   "horse",   "island", "bridge",
    "kept",   "door",  "slowly",  "yellow", "harbor",  "night",   "child",  "castle",
    "turned", "rain",  "corner",  "heavy",  "season",  "travel",  "voice",  "apple"};
constexpr std::size_t kRoomForOne = 40;

std::string digits_of(std::size_t number, std::size_t digits) {
  std::string text = std::to_string(number);
  return std::string(digits - std::min(digits, text.size()), '0') + text;
}

}  // namespace

Haystack make_haystack(std::size_t characters, std::size_t facts, std::size_t digits,
                       std::uint64_t seed) {
  std::size_t keys_there_are = 1;
  for (std::size_t i = 0; i < digits; ++i) {
    keys_there_are *= 10;
  }
  if (facts == 0 || facts > keys_there_are || characters / facts < kRoomForOne) {
    throw Error(ErrorCode::kInvalidArgument,
                "a haystack of " + std::to_string(characters) + " characters has room for 1 to " +
                    std::to_string(std::min(keys_there_are, characters / kRoomForOne)) +
                    " facts; asked for " + std::to_string(facts));
  }
  std::mt19937_64 random(seed);
  std::vector<std::size_t> keys(keys_there_are);
  for (std::size_t i = 0; i < keys.size(); ++i) {
    keys[i] = i;
  }
  // Not std::shuffle: its order differs between standard libraries.
  for (std::size_t i = keys.size() - 1; i > 0; --i) {
    std::swap(keys[i], keys[random() % (i + 1)]);
  }
  Haystack result;
  while (result.text.size() < characters) {
    result.text += kWords[random() % kWords.size()];
    result.text += ' ';
  }
  result.text.resize(characters, ' ');
  const std::size_t gap = characters / facts;
  for (std::size_t i = 0; i < facts; ++i) {
    PlantedFact fact{digits_of(keys[i], digits), digits_of(random() % 10000, 4), 0};
    const std::string text = fact.text();
    fact.at = i * gap + random() % (gap - text.size());
    result.text.replace(fact.at, text.size(), text);
    if (fact.at > 0) {
      result.text[fact.at - 1] = ' ';
    }
    result.facts.push_back(std::move(fact));
  }
  return result;
}

}  // namespace spel::server::tools
