#include "config/describe.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <vector>

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

/// What most people ever set; help shows these first.
constexpr std::array<std::string_view, 8> kUsual = {
    "model", "host", "port", "sequences", "max_seq", "data_dir", "log_level", "api_keys_file"};

bool is_usual(const Option& option) {
  return std::find(kUsual.begin(), kUsual.end(), option.key) != kUsual.end();
}

std::string default_text(const Option& option) {
  const std::string text = option_text(ServerConfig(), option);
  return text.empty() ? "none" : text;
}

std::string help_of(const Option& option) {
  return "  " + option.flag() + "\n      " + std::string(option.help) + "\n      " +
         option.allowed() + "; default " + default_text(option) + "; " + variables(option) + "\n";
}

}  // namespace

std::string config_help() {
  std::string help =
      "Usage: spel serve [flags]\n\n"
      "No flag is needed: the shipped model is served on http://127.0.0.1:8080. Flags are "
      "stronger\n"
      "than environment variables, these than the file, the file than the defaults.\n\n"
      "Usual:\n"
      "  --config FILE\n"
      "      JSON file of settings, comments allowed; also SPEL_CONFIG_FILE\n"
      "  --print-config\n"
      "      Print the settings and where each came from, and exit\n"
      "  --config-table\n"
      "      Print the settings as a Markdown table, and exit\n";
  for (const auto& option : option_table()) {
    help += is_usual(option) ? help_of(option) : "";
  }
  help += "\nAll others:\n";
  for (const auto& option : option_table()) {
    help += is_usual(option) ? "" : help_of(option);
  }
  return help;
}

std::string config_listing(const ServerConfig& config, const Sources& sources) {
  std::vector<std::string> lines;
  std::size_t width = 0;
  for (const auto& option : option_table()) {
    lines.push_back("  \"" + std::string(option.key) + "\": " + option_json(config, option) + ",");
    width = std::max(width, lines.back().size());
  }
  lines.back().pop_back();  // No comma after the last.
  std::string listing = "{\n";
  std::size_t index = 0;
  for (const auto& option : option_table()) {
    std::string& line = lines[index++];
    line.resize(width, ' ');
    listing += line + "  // " + sources.find(option.key)->second + "\n";
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
