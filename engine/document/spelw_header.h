// The 64 bytes at the front of a SPELW001 file.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "engine/arch/spel_hybrid.h"

namespace spel::engine {

inline constexpr std::string_view kSpelwMagic = "SPELW001";
inline constexpr std::string_view kSpelwFooterMagic = "SPELV001";
inline constexpr std::string_view kSpelwDirectoryMagic = "SPELD001";
inline constexpr std::size_t kSpelwHeaderBytes = 64;
inline constexpr std::size_t kSpelwDraftLayers = 4;

struct SpelwHeader {
  ModelConfig config;
  bool has_footer = false;
  bool has_directory = false;  ///< The texts of a directory follow.
};

/// Validated: throws Error(kCorrupt) naming `source`, the field and its byte offset.
[[nodiscard]] SpelwHeader parse_spelw_header(std::span<const std::byte> bytes,
                                             const std::string& source);

/// Throws Error(kInvalidArgument) if the header cannot express `config`.
[[nodiscard]] std::array<std::byte, kSpelwHeaderBytes> write_spelw_header(const ModelConfig& config,
                                                                          bool with_footer,
                                                                          bool with_directory);

}  // namespace spel::engine
