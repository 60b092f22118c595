#include "engine/files/sha256_sums.h"

#include <algorithm>
#include <map>

#include "config/base/error.h"
#include "engine/files/sha256.h"

namespace spel::engine {
namespace {

constexpr std::size_t kTextBytesMax = 64U << 10;
constexpr std::size_t kDigestDigits = 64;
constexpr std::size_t kSeparator = 2;  // Two spaces, or a space and '*' for binary mode.

using Digests = std::map<std::string, std::string, std::less<>>;

bool is_sums_line(std::string_view line) {
  return line.size() > kDigestDigits + kSeparator &&
         line.substr(0, kDigestDigits).find_first_not_of("0123456789abcdef") ==
             std::string_view::npos &&
         line[kDigestDigits] == ' ' &&
         (line[kDigestDigits + 1] == ' ' || line[kDigestDigits + 1] == '*');
}

Digests parse(std::string_view text, const std::string& source) {
  if (text.size() > kTextBytesMax) {
    throw Error(ErrorCode::kCorrupt, source + ": expected at most " +
                                         std::to_string(kTextBytesMax) + " bytes, found " +
                                         std::to_string(text.size()));
  }
  Digests digests;
  for (std::size_t number = 1; !text.empty(); ++number) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (!is_sums_line(line)) {
      throw Error(ErrorCode::kCorrupt, source + ": line " + std::to_string(number) +
                                           ": expected \"<64 hexadecimal digits>  <file name>\"");
    }
    digests.emplace(line.substr(kDigestDigits + kSeparator), line.substr(0, kDigestDigits));
  }
  return digests;
}

}  // namespace

std::string sums_text(const std::vector<FileDigest>& files) {
  std::string out;
  for (const FileDigest& file : files) {
    out += file.sha256 + "  " + file.name + "\n";
  }
  return out;
}

std::string identity_of(const FileDigest& config, const FileDigest& target,
                        const FileDigest& draft) {
  return sha256_hex(sums_text({config, target, draft}));
}

void require_sums(std::string_view text, const std::vector<FileDigest>& files,
                  const std::string& prefix) {
  const Digests digests = parse(text, prefix + "SHA256SUMS");
  for (const FileDigest& file : files) {
    const auto at = digests.find(file.name);
    if (at == digests.end()) {
      throw Error(ErrorCode::kCorrupt, prefix + "SHA256SUMS does not list " + file.name +
                                           "; run sha256sum again over the directory's files");
    }
    if (at->second != file.sha256) {
      throw Error(ErrorCode::kCorrupt,
                  prefix + file.name + ": SHA-256 is " + file.sha256 + "; SHA256SUMS has " +
                      at->second +
                      ": the file is damaged (fetch it again), or was edited on purpose (run "
                      "sha256sum again)");
    }
  }
}

}  // namespace spel::engine
