// Whether the token ids a client sent are in the model's vocabulary. Parsing does not ask: a
// request is read before it is known which model will answer it.
#pragma once

#include <cstddef>

#include "proto/completion.h"
#include "proto/generation.h"
#include "proto/tokenize.h"

namespace spel::proto {

/// Each throws RequestError (400, out_of_vocabulary) naming the field and the first id in it that
/// is
/// >= vocab_size: in stop_token_ids or logit_bias,
void check_token_ids(const GenerationOptions& options, std::size_t vocab_size);
/// in these or a prompt,
void check_token_ids(const CompletionRequest& request, std::size_t vocab_size);
/// in tokens.
void check_token_ids(const DetokenizeRequest& request, std::size_t vocab_size);

}  // namespace spel::proto
