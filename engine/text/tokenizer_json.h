// The tokenizer of a model directory in the ecosystem's form: for clients that count tokens or
// build prompts themselves. The loader does not read it.
#pragma once

#include <cstddef>
#include <string>

namespace spel::engine {

/// tokenizer.json of make_ascii_tokenizer(): 128 characters, each its code. Hugging Face's reader
/// encodes and decodes with it as we do, and refuses other characters as we do.
[[nodiscard]] std::string ascii_tokenizer_json();

/// tokenizer_config.json beside it.
[[nodiscard]] std::string ascii_tokenizer_config_json(std::size_t max_seq);

}  // namespace spel::engine
