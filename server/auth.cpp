#include "server/auth.h"

#include <fstream>
#include <openssl/crypto.h>
#include <openssl/evp.h>

#include "config/base/error.h"
#include "server/beast.h"

namespace spel::server {

ApiKeys::ApiKeys(const std::vector<std::string>& keys) {
  for (const std::string& key : keys) {
    if (key.size() < kKeyBytesMin) {
      throw Error(ErrorCode::kInvalidArgument,
                  "an API key is shorter than " + std::to_string(kKeyBytesMin) + " bytes");
    }
    digests_.push_back(digest(key));
  }
  if (digests_.empty()) {
    throw Error(ErrorCode::kInvalidArgument, "the API key file has no key in it");
  }
}

ApiKeys::Digest ApiKeys::digest(std::string_view key) {
  Digest result{};
  unsigned size = 0;
  if (EVP_Digest(key.data(), key.size(), result.data(), &size, EVP_sha256(), nullptr) != 1) {
    throw Error(ErrorCode::kInternal, "SHA-256 is not available");
  }
  return result;
}

bool ApiKeys::allows(std::string_view authorization) const {
  constexpr std::string_view kScheme = "Bearer ";
  if (!required()) {
    return true;
  }
  if (authorization.size() <= kScheme.size() ||
      !boost::beast::iequals(authorization.substr(0, kScheme.size()), kScheme)) {
    return false;
  }
  authorization.remove_prefix(kScheme.size());
  const Digest given = digest(authorization);
  bool found = false;
  for (const Digest& known : digests_) {
    const bool equal = CRYPTO_memcmp(given.data(), known.data(), given.size()) == 0;
    found = found || equal;
  }
  return found;
}

ApiKeys load_api_keys(const std::string& path) {
  std::ifstream file(path);
  if (!file) {
    throw Error(ErrorCode::kIo, "cannot read the API key file " + path);
  }
  std::vector<std::string> keys;
  for (std::string line; std::getline(file, line);) {
    while (!line.empty() && (line.back() == '\r' || line.back() == ' ' || line.back() == '\t')) {
      line.pop_back();
    }
    if (!line.empty() && line.front() != '#') {
      keys.push_back(line);
    }
  }
  return ApiKeys(keys);
}

}  // namespace spel::server
