// Includes go downwards only: each folder may include itself and what the table allows.
#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <map>
#include <regex>
#include <set>
#include <string>
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
      {"config", {{"config/"}, {"nlohmann/", "CLI/"}}},
      {"server",
       {{"server/", "engine/", "kernels/", "memory/", "proto/", "config/"},
        {"boost/", "nlohmann/", "spdlog/", "prometheus/", "openssl/"},
        {"engine/tools/", "server/tools/"}}},
      {"server/tools",
       {{"server/", "engine/", "kernels/", "memory/", "proto/", "config/"}, {"boost/"}}},
  };
  return table;
}

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

/// Every include of the module's sources that the table does not allow, "file: include".
std::vector<std::string> violations(const fs::path& root, std::size_t* files) {
  static const std::regex include(R"re(^\s*#\s*include\s*([<"])([^>"]+)[>"])re");
  std::vector<std::string> found;
  for (const auto& [folder, module] : modules()) {
    for (const auto& entry : fs::recursive_directory_iterator(root / folder)) {
      const std::string extension = entry.path().extension().string();
      const std::string path = fs::relative(entry.path(), root).generic_string();
      if (!entry.is_regular_file() || (extension != ".h" && extension != ".cpp") ||
          module_of(path) != folder || path.starts_with("kernels/bench/") ||
          path.starts_with("engine/training/")) {
        continue;
      }
      ++*files;
      std::ifstream file(entry.path());
      for (std::string line; std::getline(file, line);) {
        std::smatch match;
        if (!std::regex_search(line, match, include)) {
          continue;
        }
        const std::string target = match[2];
        const bool own = match[1] == "\"";
        // The program knows every subcommand by name.
        const bool kept_out = begins_with_any(target, module.but) && path != "server/main.cpp";
        const bool allowed =
            own ? begins_with_any(target, module.folders) && !kept_out
                : !begins_with_any(target, kLibraries) || begins_with_any(target, module.libraries);
        if (!allowed) {
          found.push_back(path + ": " + target);
        }
      }
    }
  }
  return found;
}

TEST(Layering, IncludesGoDownwardsOnly) {
  std::size_t files = 0;
  const auto found = violations(SPEL_SOURCE_DIR, &files);
  EXPECT_GT(files, 50U) << "the scan did not see the sources";
  for (const std::string& violation : found) {
    ADD_FAILURE() << violation;
  }
}

TEST(Layering, TheScanSeesAnUpwardInclude) {
  const fs::path root =
      fs::temp_directory_path() /
      ("spel-layering-" + std::to_string(::testing::UnitTest::GetInstance()->random_seed()) + "-" +
       std::to_string(std::hash<std::string>{}(SPEL_SOURCE_DIR)));
  for (const auto& [folder, module] : modules()) {
    fs::create_directories(root / folder);
  }
  std::ofstream(root / "kernels/bad.h") << "#include \"engine/engine.h\"\n";
  std::ofstream(root / "server/bad.cpp") << "#include \"engine/tools/tool.h\"\n";
  std::ofstream(root / "server/main.cpp") << "#include \"engine/tools/tool.h\"\n";
  std::ofstream(root / "engine/bad.cpp") << "#include <nlohmann/json.hpp>\n#include <vector>\n";
  std::size_t files = 0;
  const auto found = violations(root, &files);
  fs::remove_all(root);
  EXPECT_EQ(files, 4U);
  EXPECT_EQ(found, (std::vector<std::string>{"engine/bad.cpp: nlohmann/json.hpp",
                                             "kernels/bad.h: engine/engine.h",
                                             "server/bad.cpp: engine/tools/tool.h"}));
}

}  // namespace
