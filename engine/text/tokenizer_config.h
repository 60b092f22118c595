// tokenizer_config.json of a model directory: what stands beside the tokenizer.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace spel::engine {

struct TokenizerConfig {
  std::optional<std::string> bos_token;
  std::optional<std::string> eos_token;
  bool add_bos_token = false;
  std::optional<std::string> chat_template;  ///< Of several, the one called "default".
};

/// A chat template may stand in it.
inline constexpr std::size_t kTokenizerConfigBytesMax = std::size_t{4} << 20;

/// `text` is the content of `source`, which errors name. Members this does not know are passed
/// over. Throws Error(kCorrupt) for what is no JSON object, or a value of another kind.
[[nodiscard]] TokenizerConfig read_tokenizer_config(std::string_view text,
                                                    const std::string& source);

}  // namespace spel::engine
