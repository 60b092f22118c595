// The option table as text: help, the listing of --print-config, the table of config/README.md.
#pragma once

#include <string>

#include "config/load.h"

namespace spel::config {

[[nodiscard]] std::string config_help();

/// A JSON file with comments that --config reads back to the same settings; the comments say where
/// each value came from.
[[nodiscard]] std::string config_listing(const LoadedConfig& loaded);

}  // namespace spel::config
