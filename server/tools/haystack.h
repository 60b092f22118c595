// Texts with facts planted in them, the same for the same seed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace spel::server::tools {

struct PlantedFact {
  std::string key;
  std::string value;
  std::size_t at = 0;  ///< Where "KEY_<key>=<value> " begins.

  [[nodiscard]] std::string text() const { return "KEY_" + key + "=" + value + " "; }
  [[nodiscard]] std::string query() const { return "?KEY_" + key + "="; }
};

struct Haystack {
  std::string text;
  std::vector<PlantedFact> facts;  ///< By place.
};

/// `characters` of common words with `facts` facts, their keys distinct numbers of `digits` digits.
/// At most 10^digits facts, and 40 characters for each.
[[nodiscard]] Haystack make_haystack(std::size_t characters, std::size_t facts, std::size_t digits,
                                     std::uint64_t seed);

}  // namespace spel::server::tools
