// POST /v1/completions: the request.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "proto/generation.h"
#include "proto/json_text.h"

namespace spel::proto {

class Fields;

/// Text to tokenise, or the tokens themselves. Never empty.
using Prompt = std::variant<std::string, std::vector<TokenId>>;

struct CompletionRequest {
  std::vector<Prompt> prompts;  ///< 1 … kPromptsMax. Choice index = prompt index * n + i.
  bool echo = false;            ///< The choice's text begins with the prompt.
  bool parse_special = true;    ///< "<|…|>" in a text prompt is the token of that name.
  GenerationOptions options;    ///< max_tokens is always set (default 16).
};

/// Throws RequestError (400) naming the field at fault.
[[nodiscard]] CompletionRequest parse_completion_request(std::string_view body,
                                                         const JsonLimits& limits = {});

/// The same from the members of a body that holds others too. `bank` is the one that the path
/// names, if any.
[[nodiscard]] CompletionRequest read_completion(Fields& fields, const std::string& bank = {});

}  // namespace spel::proto
