// Where benchmark results go: tables for a reader, or one JSON object a line for a program.
#pragma once

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "engine/tools/bench/timing.h"
#include "engine/tools/tool.h"

namespace spel::engine::tools {

/// A named result. Extra fields say under what conditions.
struct Figure {
  std::string name;
  Spread value;
  std::string unit;
  std::vector<std::pair<std::string, std::string>> fields;
};

/// A column of a table: its heading and how many characters it takes.
struct Column {
  std::string name;
  std::size_t width;
};

/// `value` with `digits` decimals.
[[nodiscard]] std::string fixed(double value, int digits);
/// "1.02 [0.98-1.05]": the median and how far single runs strayed.
[[nodiscard]] std::string with_range(const Spread& spread, int digits);

class Report {
 public:
  Report(ToolStreams streams, bool json) : streams_(streams), json_(json) {}

  /// Starts a table; later rows line up under its columns. Text only.
  void table(const std::string& title, std::vector<Column> columns);
  void row(const std::vector<std::string>& cells);
  /// A line under the table. Text only.
  void line(const std::string& text);

  /// JSON only: tables show the same numbers.
  void figure(const Figure& figure);

  /// What is being measured now, on the error stream.
  void progress(const std::string& what);

 private:
  ToolStreams streams_;
  bool json_;
  std::vector<Column> columns_;  ///< Of the table being printed.
};

}  // namespace spel::engine::tools
