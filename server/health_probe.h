// `spel health`: is the server that these settings describe ready? For probes of containers, where
// only the settings say whether it listens on an address, with TLS or on a Unix socket.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "config/server_config.h"

namespace spel::server {

/// Nothing if /health/ready is answered with 200 within `patience`, otherwise what was found.
/// A certificate is not checked: the question is whether the server works, not who it is.
[[nodiscard]] std::optional<std::string> why_not_ready(const config::ServerConfig& config,
                                                       std::chrono::milliseconds patience);

/// The subcommand. `arguments` are those of `spel serve`. Returns 0 if ready, 1 if not, 2 for bad
/// settings. Throws nothing.
[[nodiscard]] int health(const std::vector<std::string>& arguments);

}  // namespace spel::server
