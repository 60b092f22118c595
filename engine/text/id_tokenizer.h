// The tokenizer of a model that brings none: prompts and answers are token ids.
#pragma once

#include <cstddef>
#include <memory>

#include "engine/text/tokenizer.h"

namespace spel::engine {

/// A text was given to a model that has no tokenizer.
class NoTokenizerError : public Error {
 public:
  NoTokenizerError();
};

/// `tokens` ids without text: bytes() are none, encode() throws NoTokenizerError.
[[nodiscard]] std::unique_ptr<Tokenizer> make_id_tokenizer(std::size_t tokens);

}  // namespace spel::engine
