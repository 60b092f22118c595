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

/// What follows the last message.
enum class PromptEnd {
  kAssistantTurn,  ///< The beginning of the assistant's answer.
  kAfterMessages,  ///< Nothing: the model says whose turn it is.
  kInLastMessage,  ///< Not even that message's end: it is continued.
};

struct ChatRequest {
  std::vector<ChatMessage> messages;  ///< 1 … 256
  PromptEnd end = PromptEnd::kAssistantTurn;
  GenerationOptions options;  ///< max_tokens unset when the client gave none.
};

/// Throws RequestError (400) naming the field at fault.
[[nodiscard]] ChatRequest parse_chat_request(std::string_view body, const JsonLimits& limits = {});

/// One line "role: content" for each message, then "assistant:", unless `end` says otherwise. Plain
/// ASCII around the contents. `messages` is not empty.
[[nodiscard]] std::string plain_chat_prompt(const std::vector<ChatMessage>& messages,
                                            PromptEnd end = PromptEnd::kAssistantTurn);
/// The same as a Jinja template, for clients that build prompts themselves.
[[nodiscard]] std::string_view plain_chat_template();
/// What ends the assistant's turn under plain_chat_prompt(): the next message of the user.
[[nodiscard]] std::string_view plain_chat_stop();

}  // namespace spel::proto
