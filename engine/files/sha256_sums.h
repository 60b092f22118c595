// SHA256SUMS, as sha256sum writes and checks it.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace spel::engine {

struct FileDigest {
  std::string name;
  std::string sha256;  ///< 64 lower-case hexadecimal digits.
};

/// One "digest  name" line a file.
[[nodiscard]] std::string sums_text(const std::vector<FileDigest>& files);

/// A directory's identity: the digest of the lines of the three files that decide its outputs.
[[nodiscard]] std::string identity_of(const FileDigest& config, const FileDigest& target,
                                      const FileDigest& draft);

/// Requires `text` to be well formed and to list each of `files` with the digest it has. Other
/// names in it are not looked at. Throws Error(kCorrupt) naming prefix + file.
void require_sums(std::string_view text, const std::vector<FileDigest>& files,
                  const std::string& prefix);

}  // namespace spel::engine
