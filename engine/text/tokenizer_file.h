// tokenizer.json of a model directory: byte-level byte-pair encoding in the form that Hugging
// Face's library writes.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

#include "engine/text/tokenizer.h"
#include "engine/text/tokenizer_config.h"

namespace spel::engine {

inline constexpr std::size_t kTokenizerJsonBytesMax = std::size_t{128} << 20;

/// `text` is the content of `source`, which errors name; `config` says which tokens begin and end a
/// text. Throws Error(kCorrupt) for what is not such a file and, by name, for what this build does
/// not implement: another model than BPE over bytes, another normaliser than NFC, another way of
/// cutting than by patterns.
[[nodiscard]] std::unique_ptr<Tokenizer> read_tokenizer_json(std::string_view text,
                                                             const std::string& source,
                                                             const TokenizerConfig& config);

}  // namespace spel::engine
