// A certificate for a test's server.
#pragma once

#include <cstdlib>
#include <optional>
#include <string>

#include "tests/scratch_folder.h"

namespace spel::server::testing {

/// PEM files of a server called localhost.
struct Certificate {
  std::string chain;
  std::string key;
};

/// Nothing where there is no openssl command to make it with.
[[nodiscard]] inline std::optional<Certificate> make_certificate(
    const spel::testing::ScratchFolder& folder) {
  Certificate made{folder.file("cert.pem"), folder.file("key.pem")};
  const std::string command =
      "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 "
      "-nodes -days 2 -subj /CN=localhost -keyout " +
      made.key + " -out " + made.chain + " >/dev/null 2>&1";
  if (std::system(command.c_str()) != 0) {
    return std::nullopt;
  }
  return made;
}

}  // namespace spel::server::testing
