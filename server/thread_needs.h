// How many threads a server is made of, and what a system allows.
#pragma once

#include <cstddef>
#include <string>

#include "config/server_config.h"

namespace spel::server {

/// All of them, the main one and the one that loads the model included.
[[nodiscard]] std::size_t threads_wanted(const config::ServerConfig& config);

/// What to do where a thread could not be started: how many are wanted, and the limits there are.
[[nodiscard]] std::string thread_advice(const config::ServerConfig& config);

}  // namespace spel::server
