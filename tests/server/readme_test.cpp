// The tables of settings and of metrics say what the program says.
#include <fstream>
#include <gtest/gtest.h>
#include <iterator>
#include <sstream>
#include <string>

#include "config/load.h"
#include "support.h"

namespace spel::server::testing {
namespace {

/// What stands between <!-- name --> and <!-- /name --> in a page of the documentation.
std::string part_of(const std::string& page, const std::string& name) {
  std::ifstream file(SPEL_SOURCE_DIR "/" + page);
  const std::string text{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  const std::string begin = "<!-- " + name + " -->\n";
  const std::size_t from = text.find(begin);
  const std::size_t to = text.find("<!-- /" + name + " -->");
  if (from == std::string::npos || to == std::string::npos) {
    return page + " has no part " + name;
  }
  return text.substr(from + begin.size(), to - from - begin.size());
}

/// The label names of one series, without those of histograms' buckets.
std::string label_names(const std::string& series) {
  std::string names;
  std::size_t at = series.find('{');
  while (at != std::string::npos && series[at] != '}') {
    const std::size_t equals = series.find("=\"", at);
    const std::string name = series.substr(at + 1, equals - at - 1);
    if (name != "le") {
      names += (names.empty() ? "`" : ", `") + name + "`";
    }
    at = series.find_first_of(",}", series.find('"', equals + 2));
  }
  return names;
}

/// One row for each family of a page of metrics.
std::string metrics_table(const std::string& page) {
  std::string table = "| metric | type | labels | what |\n|---|---|---|---|\n";
  std::istringstream lines(page);
  std::string help;
  std::string row;
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string mark;
    std::string kind;
    std::string name;
    words >> mark >> kind >> name;
    std::string rest;
    std::getline(words >> std::ws, rest);
    if (mark == "#" && kind == "HELP") {
      help = rest;
    } else if (mark == "#" && kind == "TYPE") {
      row = "| `" + name + "` | " + rest + " | ";
    } else if (!row.empty()) {
      table += row + label_names(line) + " | " + help + " |\n";
      row.clear();
    }
  }
  return table;
}

TEST(Readme, ListsEverySetting) {
  EXPECT_EQ(part_of("config/README.md", "settings"), config::config_table())
      << "paste what `spel serve --config-table` prints";
}

TEST(Readme, ListsEveryMetric) {
  const TestServer server(ascii_script("hello"));
  const std::string table = metrics_table(server.ask(get("/metrics")).body);
  EXPECT_NE(table.find("| `spel_http_requests_total` | counter | `route`, `status` | "),
            std::string::npos);
  EXPECT_NE(table.find("| `spel_time_to_first_token_seconds` | histogram |  | "),
            std::string::npos);
  EXPECT_EQ(part_of("server/METRICS.md", "metrics"), table) << "paste this:\n" << table;
}

}  // namespace
}  // namespace spel::server::testing
