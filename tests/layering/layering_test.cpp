// Includes go downwards only: between modules by one table, between the folders of engine/ by
// another, and in no module do files include each other in a circle. And every header compiles
// alone, which the compiler has shown where a source begins with it.
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <iterator>
#include <map>
#include <optional>
#include <regex>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace {

namespace fs = std::filesystem;

struct Module {
  std::set<std::string> folders;    ///< Own headers it may include, by leading path.
  std::set<std::string> libraries;  ///< Outside headers it may include, by leading path.
  std::set<std::string> but{};      ///< Of those folders, what it may not.
};

// Anything in angle brackets with one of these beginnings is an outside library.
const std::set<std::string> kLibraries = {"boost/",      "nlohmann/", "spdlog/",  "CLI/",
                                          "prometheus/", "sqlite3.h", "openssl/", "cblas.h"};

const std::map<std::string, Module>& modules() {
  static const std::map<std::string, Module> table = {
      {"config/base", {{"config/base/"}, {}}},
      {"config/json", {{"config/json/", "config/base/"}, {"nlohmann/"}}},
      {"kernels", {{"kernels/", "config/base/"}, {"cblas.h"}}},
      {"engine",
       {{"engine/", "kernels/", "config/json/", "config/base/"}, {"openssl/"}, {"engine/tools/"}}},
      {"engine/tools", {{"engine/", "kernels/", "config/json/", "config/base/"}, {"CLI/"}}},
      {"memory", {{"memory/", "kernels/", "config/base/"}, {"sqlite3.h"}}},
      {"proto", {{"proto/", "config/json/", "config/base/"}, {}}},
      {"config", {{"config/"}, {"CLI/"}}},
      {"server",
       {{"server/", "engine/", "kernels/", "memory/", "proto/", "config/"},
        {"boost/", "nlohmann/", "spdlog/", "prometheus/", "openssl/"},
        {"engine/tools/", "server/tools/"}}},
      {"server/tools",
       {{"server/", "engine/", "kernels/", "memory/", "proto/", "config/"}, {"boost/"}}},
  };
  return table;
}

/// Modules whose headers show no library.
const std::set<std::string> kHeadersWithoutLibraries = {"config/base", "kernels", "engine",
                                                        "engine/tools", "memory"};

/// The folders of engine/ from the bottom up: each may include itself and those before it. The
/// vocabulary of all of them comes first, its files by name; "" stands for engine/ itself.
const std::vector<std::set<std::string>> kEngineLevels = {
    {"types", "engine_config", "stats", "model/spec", "model/causal_model"},
    {"files"},
    {"template"},
    {"text"},
    {"quantise"},
    {"request"},
    {"sample"},
    {"state"},
    {"model"},
    {"arch"},
    {"document"},
    {"speculate"},
    {"capture"},
    {"schedule"},
    {""},
    {"tools"}};

// The longest folder of the table that holds the file.
std::string module_of(const std::string& path) {
  std::string best;
  for (const auto& [folder, module] : modules()) {
    if (path.starts_with(folder + "/") && folder.size() > best.size()) {
      best = folder;
    }
  }
  return best;
}

bool begins_with_any(const std::string& text, const std::set<std::string>& beginnings) {
  for (const std::string& beginning : beginnings) {
    if (text.starts_with(beginning)) {
      return true;
    }
  }
  return false;
}

struct Include {
  std::string path;  ///< Of the file it stands in.
  std::string target;
  bool own;  ///< In quotes: a file of this repository.
};

struct Scan {
  std::size_t files = 0;
  std::vector<Include> includes;
};

/// What the line of that file includes, if anything.
std::optional<Include> include_in(const std::string& line, const std::string& path) {
  static const std::regex include(R"re(^\s*#\s*include\s*([<"])([^>"]+)[>"])re");
  std::smatch match;
  if (!std::regex_search(line, match, include)) {
    return std::nullopt;
  }
  return Include{path, match[2], match[1] == "\""};
}

/// The modules' sources under `root`.
Scan scan_of(const fs::path& root) {
  Scan scan;
  for (const auto& [folder, module] : modules()) {
    for (const auto& entry : fs::recursive_directory_iterator(root / folder)) {
      const std::string extension = entry.path().extension().string();
      const std::string path = fs::relative(entry.path(), root).generic_string();
      if (!entry.is_regular_file() || (extension != ".h" && extension != ".cpp") ||
          module_of(path) != folder || path.starts_with("kernels/bench/") ||
          path.starts_with("engine/training/")) {
        continue;
      }
      ++scan.files;
      std::ifstream file(entry.path());
      for (std::string line; std::getline(file, line);) {
        if (std::optional<Include> found = include_in(line, path)) {
          scan.includes.push_back(*std::move(found));
        }
      }
    }
  }
  // Folders are read in any order.
  std::stable_sort(scan.includes.begin(), scan.includes.end(),
                   [](const Include& a, const Include& b) { return a.path < b.path; });
  return scan;
}

const Scan& sources() {
  static const Scan scan = scan_of(SPEL_SOURCE_DIR);
  return scan;
}

/// Every include that the modules' table does not allow, "file: include".
std::vector<std::string> between_modules(const Scan& scan) {
  std::vector<std::string> found;
  for (const auto& [path, target, own] : scan.includes) {
    const Module& module = modules().at(module_of(path));
    // The program knows every subcommand by name.
    const bool kept_out = begins_with_any(target, module.but) && path != "server/main.cpp";
    const bool allowed =
        own ? begins_with_any(target, module.folders) && !kept_out
            : !begins_with_any(target, kLibraries) || begins_with_any(target, module.libraries);
    if (!allowed) {
      found.push_back(path + ": " + target);
    }
  }
  return found;
}

/// Every library in a header that must show none, "file: include".
std::vector<std::string> libraries_in_headers(const Scan& scan) {
  std::vector<std::string> found;
  for (const auto& [path, target, own] : scan.includes) {
    if (!own && path.ends_with(".h") && begins_with_any(target, kLibraries) &&
        kHeadersWithoutLibraries.contains(module_of(path))) {
      found.push_back(path + ": " + target);
    }
  }
  return found;
}

/// A header and the source of its name are one unit.
std::string unit_of(const std::string& path) { return path.substr(0, path.rfind('.')); }

/// The level of a unit of engine/, by its own name or its folder's; kEngineLevels.size() if none.
std::size_t engine_level(const std::string& unit) {
  const std::string inside = unit.substr(std::string("engine/").size());
  const std::size_t slash = inside.find('/');
  const std::string folder = slash == std::string::npos ? "" : inside.substr(0, slash);
  std::size_t level = kEngineLevels.size();
  for (std::size_t i = 0; i < kEngineLevels.size(); ++i) {
    if (kEngineLevels[i].contains(inside)) {
      return i;
    }
    if (kEngineLevels[i].contains(folder)) {
      level = i;
    }
  }
  return level;
}

/// Every include inside engine/ that goes up, or stands in a folder without a level.
std::vector<std::string> upwards_in_engine(const Scan& scan) {
  std::vector<std::string> found;
  for (const auto& [path, target, own] : scan.includes) {
    if (!own || !path.starts_with("engine/") || !target.starts_with("engine/")) {
      continue;
    }
    const std::size_t level = engine_level(unit_of(path));
    if (level == kEngineLevels.size() || engine_level(unit_of(target)) > level) {
      found.push_back(path + ": " + target);
    }
  }
  return found;
}

using Circle = std::set<std::string>;

/// Units that include each other, directly or through others.
std::set<Circle> circles(const Scan& scan) {
  std::map<std::string, std::set<std::string>> includes;
  for (const auto& [path, target, own] : scan.includes) {
    if (own && unit_of(target) != unit_of(path)) {
      includes[unit_of(path)].insert(unit_of(target));
    }
  }
  const auto reached_from = [&](const std::string& start) {
    std::set<std::string> reached;
    std::vector<std::string> open{start};
    while (!open.empty()) {
      const auto at = includes.find(open.back());
      open.pop_back();
      if (at == includes.end()) {
        continue;
      }
      for (const std::string& next : at->second) {
        if (reached.insert(next).second) {
          open.push_back(next);
        }
      }
    }
    return reached;
  };
  std::map<std::string, std::set<std::string>> reached;
  for (const auto& [unit, targets] : includes) {
    reached[unit] = reached_from(unit);
  }
  std::set<Circle> found;
  for (const auto& [unit, others] : reached) {
    if (others.contains(unit)) {
      Circle circle;
      for (const std::string& other : others) {
        const auto back = reached.find(other);
        if (back != reached.end() && back->second.contains(unit)) {
          circle.insert(other);
        }
      }
      found.insert(circle);
    }
  }
  return found;
}

std::string text_of(const Circle& circle) {
  std::string text;
  for (const std::string& unit : circle) {
    text += (text.empty() ? "" : ", ") + unit;
  }
  return text;
}

/// Written in terms of the vectors of whatever target includes them.
constexpr std::string_view kNeverAlone = "kernels/generic/";

/// The headers under the folders of `root` that no source there, or in `made`, begins with.
std::vector<std::string> headers_nothing_begins_with(const fs::path& root,
                                                     const std::set<std::string>& folders,
                                                     const fs::path& made) {
  std::set<std::string> headers;
  std::set<std::string> begun;
  const auto read = [&](const fs::path& folder) {
    for (const auto& entry : fs::recursive_directory_iterator(folder)) {
      const std::string extension = entry.path().extension().string();
      const std::string path = fs::relative(entry.path(), root).generic_string();
      if (extension == ".h" && !path.starts_with(kNeverAlone)) {
        headers.insert(path);
      } else if (extension == ".cpp") {
        std::ifstream file(entry.path());
        for (std::string line; std::getline(file, line);) {
          if (const std::optional<Include> first = include_in(line, path)) {
            begun.insert(first->target);
            break;
          }
        }
      }
    }
  };
  for (const std::string& folder : folders) {
    read(root / folder);
  }
  read(made);
  std::vector<std::string> left;
  std::set_difference(headers.begin(), headers.end(), begun.begin(), begun.end(),
                      std::back_inserter(left));
  return left;
}

void expect_none(const std::vector<std::string>& violations) {
  for (const std::string& violation : violations) {
    ADD_FAILURE() << violation;
  }
}

TEST(Layering, IncludesGoDownwardsOnly) {
  EXPECT_GT(sources().files, 50U) << "the scan did not see the sources";
  expect_none(between_modules(sources()));
}

TEST(Layering, HeadersBelowTheWireShowNoLibrary) { expect_none(libraries_in_headers(sources())); }

TEST(Layering, FoldersOfTheEngineIncludeDownwardsOnly) {
  expect_none(upwards_in_engine(sources()));
}

TEST(Layering, NoFilesIncludeEachOtherInACircle) {
  for (const Circle& circle : circles(sources())) {
    ADD_FAILURE() << text_of(circle);
  }
}

TEST(Layering, ASourceBeginsWithEveryHeader) {
  expect_none(headers_nothing_begins_with(
      SPEL_SOURCE_DIR, {"config", "kernels", "engine", "memory", "proto", "server", "tests"},
      SPEL_HEADERS_ALONE));
}

TEST(Layering, TheScanSeesWhatIsNotAllowed) {
  const fs::path root =
      fs::temp_directory_path() /
      ("spel-layering-" + std::to_string(::testing::UnitTest::GetInstance()->random_seed()) + "-" +
       std::to_string(std::hash<std::string>{}(SPEL_SOURCE_DIR)));
  for (const auto& [folder, module] : modules()) {
    fs::create_directories(root / folder);
  }
  fs::create_directories(root / "engine/text");
  fs::create_directories(root / "engine/attic");
  std::ofstream(root / "kernels/bad.h") << "#include \"engine/engine.h\"\n";
  std::ofstream(root / "server/bad.cpp") << "#include \"engine/tools/tool.h\"\n";
  std::ofstream(root / "server/main.cpp") << "#include \"engine/tools/tool.h\"\n";
  std::ofstream(root / "engine/bad.cpp") << "#include <nlohmann/json.hpp>\n#include <vector>\n";
  std::ofstream(root / "engine/text/up.h") << "#include \"engine/model/weights.h\"\n"
                                              "#include \"engine/model/spec.h\"\n"
                                              "#include <openssl/evp.h>\n";
  std::ofstream(root / "engine/attic/lost.h") << "#include \"engine/types.h\"\n";
  std::ofstream(root / "memory/a.cpp") << "#include \"memory/b.h\"\n#include \"memory/a.h\"\n";
  std::ofstream(root / "memory/b.h") << "#include \"memory/c.h\"\n";
  std::ofstream(root / "memory/d.h") << "\n";
  std::ofstream(root / "memory/c.cpp") << "#include \"memory/a.h\"\n#include \"memory/d.h\"\n";
  fs::create_directories(root / "made");
  std::ofstream(root / "made/memory_b_h.cpp") << "#include \"memory/b.h\"\n";
  const Scan scan = scan_of(root);
  const std::vector<std::string> late =
      headers_nothing_begins_with(root, {"kernels", "memory"}, root / "made");
  fs::remove_all(root);
  EXPECT_EQ(scan.files, 10U);
  EXPECT_EQ(between_modules(scan),
            (std::vector<std::string>{"engine/bad.cpp: nlohmann/json.hpp",
                                      "kernels/bad.h: engine/engine.h",
                                      "server/bad.cpp: engine/tools/tool.h"}));
  EXPECT_EQ(libraries_in_headers(scan),
            (std::vector<std::string>{"engine/text/up.h: openssl/evp.h"}));
  EXPECT_EQ(upwards_in_engine(scan),
            (std::vector<std::string>{"engine/attic/lost.h: engine/types.h",
                                      "engine/text/up.h: engine/model/weights.h"}));
  EXPECT_EQ(late, (std::vector<std::string>{"kernels/bad.h", "memory/d.h"}));
  EXPECT_EQ(circles(scan), (std::set<Circle>{{"memory/a", "memory/b", "memory/c"}}));
}

}  // namespace
