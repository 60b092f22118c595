// The JSON file behind --config.
#pragma once

#include <map>
#include <string>

namespace spel::config {

/// Key to text form, for every key of the file. Comments are allowed; unknown and repeated keys and
/// values of the wrong JSON kind are not: Error(kInvalidArgument). Error(kIo) when it cannot be
/// read.
[[nodiscard]] std::map<std::string, std::string, std::less<>> read_config_file(
    const std::string& path);

}  // namespace spel::config
