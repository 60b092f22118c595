#include "engine/files/sha256.h"

#include <array>
#include <new>
#include <openssl/evp.h>

#include "config/base/error.h"

namespace spel::engine {
namespace {

void require(int done) {
  if (done != 1) {
    throw Error(ErrorCode::kInternal, "OpenSSL cannot compute SHA-256 here");
  }
}

}  // namespace

struct Sha256::Context {
  std::unique_ptr<EVP_MD_CTX, decltype(&EVP_MD_CTX_free)> digest{EVP_MD_CTX_new(),
                                                                 &EVP_MD_CTX_free};
};

Sha256::Sha256() : context_(std::make_unique<Context>()) {
  if (!context_->digest) {
    throw std::bad_alloc();
  }
  require(EVP_DigestInit_ex(context_->digest.get(), EVP_sha256(), nullptr));
}

Sha256::~Sha256() = default;

void Sha256::update(std::span<const std::byte> bytes) {
  require(EVP_DigestUpdate(context_->digest.get(), bytes.data(), bytes.size()));
}

void Sha256::update(std::string_view text) { update(std::as_bytes(std::span(text))); }

std::string Sha256::finish_hex() {
  static constexpr char kHex[] = "0123456789abcdef";
  std::array<unsigned char, 32> digest{};
  require(EVP_DigestFinal_ex(context_->digest.get(), digest.data(), nullptr));
  std::string hex;
  for (const unsigned char byte : digest) {
    hex.push_back(kHex[byte >> 4U]);
    hex.push_back(kHex[byte & 0xFU]);
  }
  return hex;
}

std::string sha256_hex(std::span<const std::byte> bytes) {
  Sha256 hash;
  hash.update(bytes);
  return hash.finish_hex();
}

std::string sha256_hex(std::string_view text) { return sha256_hex(std::as_bytes(std::span(text))); }

}  // namespace spel::engine
