// SHA-256 (FIPS 180-4): a model's identity and the check against SHA256SUMS.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace spel::engine {

/// Feed bytes with update(), then call finish_hex() once. Throws Error(kInternal) where the
/// cryptographic library has no SHA-256.
class Sha256 {
 public:
  Sha256();
  ~Sha256();
  Sha256(const Sha256&) = delete;
  Sha256& operator=(const Sha256&) = delete;

  void update(std::span<const std::byte> bytes);
  void update(std::string_view text);
  /// 64 lower-case hexadecimal digits.
  [[nodiscard]] std::string finish_hex();

 private:
  struct Context;
  std::unique_ptr<Context> context_;
};

[[nodiscard]] std::string sha256_hex(std::span<const std::byte> bytes);
[[nodiscard]] std::string sha256_hex(std::string_view text);

}  // namespace spel::engine
