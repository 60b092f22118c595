// How fast banks of many notes are searched, against what the memory can give.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace spel::kernels {
class Kernels;
}

namespace spel::server::tools {

struct SearchFigure {
  std::string name;  ///< "10k", "100k", "1m"
  std::size_t notes = 0;
  double milliseconds = 0.0;       ///< The median.
  double bytes_per_second = 0.0;   ///< Of the coordinates it must read.
  double text_milliseconds = 0.0;  ///< The median, of notes that are all much like the query.
  double text_bytes_per_note = 0.0;
};

struct SearchFigures {
  std::vector<SearchFigure> searches;
  double read_bytes_per_second =
      0.0;  ///< One core reading uncached memory: the limit from 100k on.
};

/// Searches banks of 10,000, 100,000 and 1,000,000 notes of random sketches, as far as `notes_max`.
[[nodiscard]] SearchFigures measure_search(const kernels::Kernels& kernels, std::size_t notes_max);

}  // namespace spel::server::tools
