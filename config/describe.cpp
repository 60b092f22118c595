#include "config/describe.h"

#include <algorithm>

#include "config/options.h"

namespace spel::config {

namespace {

std::string variables(const Option& option) {
  std::string names = option.variable();
  if (!option.other_variable.empty()) {
    names += ", " + std::string(option.other_variable);
  }
  return names;
}

std::string default_text(const Option& option) {
  const std::string text = option_text(ServerConfig(), option);
  return text.empty() ? "none" : text;
}

}  // namespace

std::string config_help() {
  std::string help =
      "Usage: spel serve [flags]\n\n"
      "Flags are stronger than environment variables, these than the file, the file than the\n"
      "defaults.\n\n"
      "  --config FILE\n"
      "      JSON file of settings, comments allowed; also SPEL_CONFIG_FILE\n"
      "  --print-config\n"
      "      Print the settings and where each came from, and exit\n"
      "  --config-table\n"
      "      Print the settings as a Markdown table, and exit\n\n";
  for (const auto& option : option_table()) {
    help += "  " + option.flag() + "\n      " + std::string(option.help) + "\n      " +
            option.allowed() + "; default " + default_text(option) + "; " + variables(option) +
            "\n";
  }
  return help;
}

std::string config_listing(const LoadedConfig& loaded) {
  std::vector<std::string> lines;
  std::size_t width = 0;
  for (const auto& option : option_table()) {
    lines.push_back("  \"" + std::string(option.key) + "\": " + option_json(loaded.config, option) +
                    ",");
    width = std::max(width, lines.back().size());
  }
  lines.back().pop_back();  // No comma after the last.
  std::string listing = "{\n";
  std::size_t index = 0;
  for (const auto& option : option_table()) {
    std::string& line = lines[index++];
    line.resize(width, ' ');
    listing += line + "  // " + loaded.sources.find(option.key)->second + "\n";
  }
  return listing + "}\n";
}

std::string config_table() {
  std::string table =
      "| flag | environment | default | allowed | what |\n"
      "|---|---|---|---|---|\n";
  for (const auto& option : option_table()) {
    const std::string names =
        option.other_variable.empty()
            ? "`" + option.variable() + "`"
            : "`" + option.variable() + "`, `" + std::string(option.other_variable) + "`";
    table += "| `" + option.flag() + "` | " + names + " | " + default_text(option) + " | " +
             option.allowed() + " | " + std::string(option.help) + " |\n";
  }
  return table;
}

}  // namespace spel::config
