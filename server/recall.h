// Notes put before a prompt.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "memory/note.h"
#include "proto/completion.h"
#include "proto/receipt.h"
#include "server/backend.h"
#include "server/net.h"

namespace spel::server {

/// Texts become ids, which replay_notes() wants. Throws proto::RequestError.
void encode_prompts(proto::CompletionRequest& request, const engine::Tokenizer& tokenizer);

/// What a prompt and its answer may take.
struct RecallLimits {
  std::size_t max_tokens = 1;  ///< Of the answer.
  std::size_t max_seq = 0;
};
/// `prompt` with those of `notes`, which come best first, right before it that leave room for the
/// answer, the best one last: nearest to the question. `report` says which, and how many tokens.
[[nodiscard]] std::vector<engine::TokenId> recall(std::span<const memory::Note> notes,
                                                  std::span<const engine::TokenId> prompt,
                                                  const RecallLimits& limits,
                                                  proto::ReplayReport& report);

/// Addresses the bank of request.options.notebank with each prompt, and puts what recall() makes of
/// the notes found in the prompt's place. Throws proto::RequestError.
[[nodiscard]] Task<std::vector<proto::ReplayReport>> replay_notes(
    const Executor& executor, const Backend& backend, proto::CompletionRequest& request);

}  // namespace spel::server
