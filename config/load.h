// Flags over environment over file over defaults.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "config/describe.h"
#include "config/server_config.h"

namespace spel::config {

/// The SPEL_… variables.
using Environment = std::map<std::string, std::string, std::less<>>;
[[nodiscard]] Environment process_environment();

/// What the command line asked for.
enum class Action {
  kServe,
  kPrint,  ///< Write `text` to standard output and exit 0 (--help, --print-config, --config-table).
};

struct LoadedConfig {
  Action action = Action::kServe;
  ServerConfig config;
  std::string text;                   ///< For kPrint.
  std::vector<std::string> warnings;  ///< Variables that look like ours and are not.
  Sources sources;
};

/// `arguments` is what follows `spel serve`. Throws Error(kInvalidArgument) for a bad flag, name or
/// value, naming the key, the value, where it came from and what is allowed; Error(kIo) for a file
/// that cannot be read. The caller exits with status 2.
[[nodiscard]] LoadedConfig load_server_config(const std::vector<std::string>& arguments,
                                              const Environment& environment);

}  // namespace spel::config
