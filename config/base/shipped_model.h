// Where the shipped model is: the one that is meant when none is named.
#pragma once

#include <array>
#include <filesystem>
#include <optional>
#include <system_error>

namespace spel {

/// As the source tree has it; also the default of the setting `model`.
inline constexpr const char* kShippedModel = "engine/models/spel-21m";
/// As an installation has it, from the folder of the program.
inline constexpr const char* kInstalledModel = "../share/spel/models/spel-21m";

/// Looks below `here`, then around `program`: above build/PRESET/spel, or beside PREFIX/bin/spel.
/// Nothing if it is in none of them.
inline std::optional<std::filesystem::path> find_shipped_model(
    const std::filesystem::path& here, const std::filesystem::path& program) {
  const std::filesystem::path folder = program.parent_path();
  const std::array candidates = {here / kShippedModel, folder / "../.." / kShippedModel,
                                 folder / kInstalledModel};
  for (const std::filesystem::path& candidate : candidates) {
    std::error_code ignored;  // Not there or not readable: then it is not what is meant.
    if (std::filesystem::exists(candidate, ignored)) {
      return candidate.lexically_normal();
    }
  }
  return std::nullopt;
}

/// For this process: so that it does not matter from which folder the program is called.
inline std::optional<std::filesystem::path> find_shipped_model() {
  std::error_code ignored;  // Without /proc only the working directory is looked at.
  return find_shipped_model("", std::filesystem::read_symlink("/proc/self/exe", ignored));
}

}  // namespace spel
