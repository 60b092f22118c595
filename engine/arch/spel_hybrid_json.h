// config.json of a model directory.
#pragma once

#include <string>
#include <string_view>

#include "engine/arch/spel_hybrid.h"

namespace spel::engine {

/// Reads and validates. Unknown keys are passed over; a known key of the wrong type or out of
/// range, a missing dimension, or a switch this build does not implement is refused with
/// Error(kCorrupt) naming `source` and the key.
[[nodiscard]] ModelConfig parse_config_json(std::string_view text, const std::string& source);

/// The specification alone.
[[nodiscard]] ModelSpec spel_hybrid_spec_of(std::string_view text, const std::string& source);

/// The inverse of parse_config_json(). `weights_dtype` ("bf16" or "f32") tells readers what
/// model.safetensors holds.
[[nodiscard]] std::string write_config_json(const ModelConfig& config,
                                            std::string_view weights_dtype);

}  // namespace spel::engine
