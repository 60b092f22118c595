// The tokens of an answer as logprobs report them, and the two forms in which clients know these.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "proto/generation.h"

namespace spel {
class JsonValue;
}

namespace spel::proto {

struct TokenAlternative {
  TokenId token = 0;
  std::string bytes;
  float logprob = 0.0F;
};

/// One token of a choice.
struct TokenReport {
  TokenId token = 0;
  std::string bytes;
  std::optional<float> logprob;  ///< Absent for the first token of an echoed prompt.
  std::vector<TokenAlternative> top;
  std::size_t text_offset = 0;  ///< Where it starts in the choice's text, in code points.
};

// Only for the builders of this module.

/// {"text_offset","token_logprobs","tokens","top_logprobs"}, one entry each for every token. A
/// token that is not valid UTF-8 is written "bytes:\xe9…", as OpenAI does.
[[nodiscard]] JsonValue legacy_logprobs_json(const std::vector<TokenReport>& tokens);

/// {"content":[{"token","logprob","bytes","top_logprobs":[{"token","logprob","bytes"}]}]}. In
/// "token" invalid UTF-8 becomes U+FFFD; "bytes" is exact.
[[nodiscard]] JsonValue chat_logprobs_json(const std::vector<TokenReport>& tokens);

}  // namespace spel::proto
