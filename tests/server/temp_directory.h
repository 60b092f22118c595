// A directory that goes with the test.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <gtest/gtest.h>
#include <optional>
#include <string>

namespace spel::server::testing {

class TempDirectory {
 public:
  TempDirectory() {
    std::string pattern = ::testing::TempDir() + "spel-access-XXXXXX";
    path_ = ::mkdtemp(pattern.data());
  }
  ~TempDirectory() { std::filesystem::remove_all(path_); }
  TempDirectory(const TempDirectory&) = delete;
  TempDirectory& operator=(const TempDirectory&) = delete;

  [[nodiscard]] std::string file(const std::string& name) const { return path_ / name; }

 private:
  std::filesystem::path path_;
};

/// PEM files of a server called localhost.
struct Certificate {
  std::string chain;
  std::string key;
};

/// Nothing where there is no openssl command to make it with.
[[nodiscard]] inline std::optional<Certificate> make_certificate(const TempDirectory& directory) {
  Certificate made{directory.file("cert.pem"), directory.file("key.pem")};
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
