// The two forms in which clients know logprobs. Only for the builders of this module.
#pragma once

#include <vector>

#include "config/json/value.h"
#include "proto/responses.h"

namespace spel::proto {

/// {"text_offset","token_logprobs","tokens","top_logprobs"}, one entry each for every token. A
/// token that is not valid UTF-8 is written "bytes:\xe9…", as OpenAI does.
[[nodiscard]] JsonValue legacy_logprobs_json(const std::vector<TokenReport>& tokens);

/// {"content":[{"token","logprob","bytes","top_logprobs":[{"token","logprob","bytes"}]}]}. In
/// "token" invalid UTF-8 becomes U+FFFD; "bytes" is exact.
[[nodiscard]] JsonValue chat_logprobs_json(const std::vector<TokenReport>& tokens);

}  // namespace spel::proto
