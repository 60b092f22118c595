// SHA-256 (FIPS 180-4): a model's identity and the check against SHA256SUMS.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace spel::engine {

/// Which code computes it; the digest is the same. kFastest uses the processor's SHA instructions
/// where it has them; kPortable exists to be tested against.
enum class Sha256Code { kFastest, kPortable };

/// Feed bytes with update(), then call finish_hex() once.
class Sha256 {
 public:
  explicit Sha256(Sha256Code code = Sha256Code::kFastest);

  void update(std::span<const std::byte> bytes);
  void update(std::string_view text);
  /// 64 lower-case hexadecimal digits.
  [[nodiscard]] std::string finish_hex();

 private:
  static constexpr std::size_t kBlockBytes = 64;

  using State = std::array<std::uint32_t, 8>;
  using Compress = void (*)(State& state, const std::byte* data, std::size_t blocks);

  Compress compress_;
  State state_ = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                  0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
  std::array<std::byte, kBlockBytes> pending_{};
  std::size_t pending_size_ = 0;
  std::uint64_t total_bytes_ = 0;
};

[[nodiscard]] std::string sha256_hex(std::span<const std::byte> bytes);
[[nodiscard]] std::string sha256_hex(std::string_view text);

}  // namespace spel::engine
