// generation_config.json of a model directory: how its makers want it to be sampled, and which
// tokens end its texts.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/types.h"

namespace spel::engine {

/// What a request gets where it says nothing. Absent: the file says nothing either, and the
/// interface's own default stands.
struct GenerationDefaults {
  std::optional<float> temperature;         ///< [0, 2]; 0: argmax.
  std::optional<float> top_p;               ///< (0, 1]
  std::optional<std::size_t> top_k;         ///< 0: off.
  std::optional<float> min_p;               ///< [0, 1]
  std::optional<float> repetition_penalty;  ///< (0, 2]

  friend bool operator==(const GenerationDefaults&, const GenerationDefaults&) = default;
};

struct GenerationConfig {
  GenerationDefaults defaults;
  std::vector<TokenId> eos;  ///< In the file's order, each once; empty: it names none.

  friend bool operator==(const GenerationConfig&, const GenerationConfig&) = default;
};

/// Bytes of a generation_config.json: the real ones have a few hundred.
inline constexpr std::size_t kGenerationConfigBytesMax = std::size_t{1} << 16;

/// `text` is the content of `source`, which errors name. Members this does not know are passed
/// over; `do_sample` too, as in vLLM: a request that wants the likeliest token says so. Throws
/// Error(kCorrupt) for what is no JSON object, or a value that is not in its range.
[[nodiscard]] GenerationConfig read_generation_config(std::string_view text,
                                                      const std::string& source);

}  // namespace spel::engine
