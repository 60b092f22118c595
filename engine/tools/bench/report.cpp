#include "engine/tools/bench/report.h"

#include <algorithm>
#include <cmath>
#include <iomanip>
#include <ostream>
#include <sstream>
#include <utility>

#include "config/json/value.h"

namespace spel::engine::tools {
namespace {

/// JSON has no infinity and no NaN.
std::string json_number(double value) {
  if (!std::isfinite(value)) {
    return "null";
  }
  std::ostringstream text;
  text << std::setprecision(6) << value;
  return text.str();
}

/// The first column is flush left, the others right, two blanks apart.
void print_cells(const std::vector<std::string>& cells, const std::vector<Column>& columns,
                 std::ostream& out) {
  for (std::size_t i = 0; i < cells.size(); ++i) {
    const std::size_t width = i < columns.size() ? columns[i].width : 0;
    const std::string pad(width - std::min(width, cells[i].size()), ' ');
    out << "  " << (i == 0 ? cells[i] + pad : pad + cells[i]);
  }
  out << "\n" << std::flush;
}

}  // namespace

std::string fixed(double value, int digits) {
  std::ostringstream text;
  text << std::fixed << std::setprecision(digits) << value;
  return text.str();
}

std::string with_range(const Spread& spread, int digits) {
  return fixed(spread.median, digits) + " [" + fixed(spread.low, digits) + "-" +
         fixed(spread.high, digits) + "]";
}

void Report::table(const std::string& title, std::vector<Column> columns) {
  if (json_) {
    return;
  }
  columns_ = std::move(columns);
  std::vector<std::string> names;
  names.reserve(columns_.size());
  for (const Column& column : columns_) {
    names.push_back(column.name);
  }
  streams_.out << "\n" << title << "\n";
  print_cells(names, columns_, streams_.out);
}

void Report::row(const std::vector<std::string>& cells) {
  if (!json_) {
    print_cells(cells, columns_, streams_.out);
  }
}

void Report::line(const std::string& text) {
  if (!json_) {
    streams_.out << "  " << text << "\n" << std::flush;
  }
}

void Report::figure(const Figure& figure) {
  if (!json_) {
    return;
  }
  const auto quoted = [](const std::string& text) {
    std::string out;
    write_json_string(text, out);
    return out;
  };
  std::ostream& out = streams_.out;
  out << "{\"figure\": " << quoted(figure.name)
      << ", \"value\": " << json_number(figure.value.median)
      << ", \"unit\": " << quoted(figure.unit) << ", \"n\": " << figure.value.runs
      << ", \"low\": " << json_number(figure.value.low)
      << ", \"high\": " << json_number(figure.value.high);
  for (const auto& [key, value] : figure.fields) {
    out << ", " << quoted(key) << ": " << quoted(value);
  }
  out << "}\n" << std::flush;
}

void Report::progress(const std::string& what) {
  streams_.err << "bench: " << what << "\n" << std::flush;
}

}  // namespace spel::engine::tools
