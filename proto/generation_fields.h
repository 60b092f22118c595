// Reading what the completion and the chat request share. Only for the parsers of this module.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "proto/fields.h"
#include "proto/foreign_fields.h"
#include "proto/generation.h"

namespace spel::proto {

/// "max_tokens", or its newer name "max_completion_tokens".
[[nodiscard]] std::optional<std::size_t> read_max_tokens(Fields& fields);

/// Fills `options` from the members both endpoints know, and refuses those that ask for something
/// this server does not do. After everything else has been read, max_tokens and logprobs included.
/// `bank` is the one an endpoint's path names: `notebank` need not be there then, and may not name
/// another.
void read_generation_options(Fields& fields, Endpoints endpoint, GenerationOptions& options,
                             const std::string& bank = {});

/// The member "ranker".
[[nodiscard]] std::optional<Ranker> read_ranker(Fields& fields);

/// The token ids of a JSON array; `param` names it in errors ("prompt[1]").
[[nodiscard]] std::vector<TokenId> read_token_ids(const JsonValue& array, const std::string& param);

/// The most tokens a request may ask for; beyond the context the output is cut there.
inline constexpr std::size_t kMaxTokensMax = 2147483647;
inline constexpr std::int64_t kTokenIdMax = 2147483647;

}  // namespace spel::proto
