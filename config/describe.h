// The option table as text: help, the listing of --print-config, the table of config/README.md.
#pragma once

#include <functional>
#include <map>
#include <string>

#include "config/server_config.h"

namespace spel::config {

/// Where each value came from: key to "flag" | "environment" | "file" | "default".
using Sources = std::map<std::string, std::string, std::less<>>;

[[nodiscard]] std::string config_help();

/// The options as a Markdown table.
[[nodiscard]] std::string config_table();

/// A JSON file with comments that --config reads back to the same settings; the comments are
/// `sources`, which has every key.
[[nodiscard]] std::string config_listing(const ServerConfig& config, const Sources& sources);

}  // namespace spel::config
