// API keys.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace spel::server {

/// Immutable, safe from any thread. Keys are kept and compared as digests, in constant time and
/// without stopping at the first match.
class ApiKeys {
 public:
  /// No keys: everything is allowed.
  ApiKeys() = default;
  /// Throws Error(kInvalidArgument) if there is none, or one that is shorter than kKeyBytesMin.
  explicit ApiKeys(const std::vector<std::string>& keys);

  [[nodiscard]] bool required() const noexcept { return !digests_.empty(); }
  /// `authorization` is the field's value: "Bearer KEY".
  [[nodiscard]] bool allows(std::string_view authorization) const;

  static constexpr std::size_t kKeyBytesMin = 8;

 private:
  using Digest = std::array<std::uint8_t, 32>;
  [[nodiscard]] static Digest digest(std::string_view key);

  std::vector<Digest> digests_;
};

/// One key a line; empty lines and lines that start with '#' are skipped. Throws Error.
[[nodiscard]] ApiKeys load_api_keys(const std::string& path);

}  // namespace spel::server
