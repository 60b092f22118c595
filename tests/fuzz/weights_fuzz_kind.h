// The first byte of a fuzz input says what the rest is.
#pragma once

#include <cstdint>

namespace spel::engine {

enum class WeightsFuzzKind : std::uint8_t {
  kSpelw,      ///< A whole SPELW001 file.
  kContainer,  ///< A safetensors file, whatever its tensors.
  kConfig,     ///< config.json alone.
  kDirectory,  ///< u16 size + config.json, u16 size + model.safetensors, draft.safetensors.
  kCount,
};

}  // namespace spel::engine
