// POST /v1/chat/completions: the request.
#pragma once

#include <cstddef>
#include <optional>
#include <string_view>

#include "proto/conversation.h"
#include "proto/generation.h"
#include "proto/json_text.h"

namespace spel::proto {

/// Where an answer's thoughts go, of a model that marks them.
enum class ReasoningForm {
  kApart,   ///< Into "reasoning_content".
  kInText,  ///< They stay in the content, tags and all.
  kLeftOut,
};

struct ChatRequest {
  Conversation conversation;
  /// Tokens after which a thought is closed; absent: the server's setting.
  std::optional<std::size_t> thinking_budget;
  std::optional<ReasoningForm> reasoning;  ///< Absent: the server's setting.
  GenerationOptions options;               ///< max_tokens unset when the client gave none.
};

/// Throws RequestError (400) naming the field at fault.
[[nodiscard]] ChatRequest parse_chat_request(std::string_view body, const JsonLimits& limits = {});

}  // namespace spel::proto
