// `spel serve`.
#pragma once

#include <string>
#include <vector>

namespace spel::server {

/// Runs until SIGINT, SIGTERM or SIGHUP. Returns the exit status: 2 for a bad configuration, 1 if
/// the server cannot run, 0 after a shutdown. Throws nothing.
[[nodiscard]] int serve(const std::vector<std::string>& arguments);

}  // namespace spel::server
