// Notes put before a prompt.
#pragma once

#include <vector>

#include "proto/completion.h"
#include "proto/receipt.h"
#include "server/backend.h"
#include "server/net.h"

namespace spel::server {

/// Texts become ids, which recall() wants. Throws proto::RequestError.
void encode_prompts(proto::CompletionRequest& request, const engine::Tokenizer& tokenizer);

/// Addresses the bank of request.options.notebank with each prompt and puts the notes found right
/// before it, the best one last, as many as leave room for the answer. Nothing happens to a request
/// without notebank. Throws proto::RequestError.
[[nodiscard]] Task<std::vector<proto::ReplayReport>> recall(const Executor& executor,
                                                            const Backend& backend,
                                                            proto::CompletionRequest& request);

}  // namespace spel::server
