// The file and tensor names of a model directory, for its reader and its writer.
#pragma once

#include <cstddef>
#include <string>

#include "engine/arch/tensors.h"

namespace spel::engine {

inline constexpr const char* kConfigName = "config.json";
inline constexpr const char* kTargetName = "model.safetensors";
inline constexpr const char* kShardIndexName = "model.safetensors.index.json";
inline constexpr const char* kGenerationConfigName = "generation_config.json";
inline constexpr const char* kDraftName = "draft.safetensors";
inline constexpr const char* kGoldenName = "golden.safetensors";
inline constexpr const char* kTokenizerName = "tokenizer.json";
inline constexpr const char* kTokenizerConfigName = "tokenizer_config.json";
inline constexpr const char* kChatTemplateName = "chat_template.jinja";
inline constexpr const char* kSumsName = "SHA256SUMS";

inline constexpr std::size_t kConfigJsonBytesMax = 1U << 20;

/// "….weight_q8" for "….weight".
[[nodiscard]] inline std::string int8_name(const TensorSpec& tensor) { return tensor.name + "_q8"; }
/// "….weight_t2" for "….weight".
[[nodiscard]] inline std::string ternary_name(const TensorSpec& tensor) {
  return tensor.name + "_t2";
}
/// "….scale" for "….weight".
[[nodiscard]] inline std::string scale_name(const TensorSpec& tensor) {
  return tensor.name.substr(0, tensor.name.rfind('.') + 1) + "scale";
}

}  // namespace spel::engine
