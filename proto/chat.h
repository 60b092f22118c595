// POST /v1/chat/completions: the request, and the template of a model that brings none.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "proto/generation.h"
#include "proto/json_text.h"

namespace spel::proto {

enum class Role { kSystem, kDeveloper, kUser, kAssistant };
[[nodiscard]] std::string_view role_name(Role role);

struct ChatMessage {
  Role role = Role::kUser;
  std::string content;  ///< The text parts, joined.
};

struct ChatRequest {
  std::vector<ChatMessage> messages;  ///< 1 … 256
  GenerationOptions options;          ///< max_tokens unset when the client gave none.
};

/// Throws RequestError (400) naming the field at fault.
[[nodiscard]] ChatRequest parse_chat_request(std::string_view body, const JsonLimits& limits = {});

/// One line "role: content" for each message, then "assistant:". Plain ASCII around the contents.
[[nodiscard]] std::string plain_chat_prompt(const std::vector<ChatMessage>& messages);
/// What ends the assistant's turn under plain_chat_prompt(): the next message of the user.
[[nodiscard]] std::string_view plain_chat_stop();

}  // namespace spel::proto
