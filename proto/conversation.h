// A chat so far, and how the model is to go on: what /v1/chat/completions and /tokenize have in
// common. Turning it into a prompt is the template's work; the one here is for models without.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "config/json/value.h"

namespace spel::proto {

class Fields;

enum class Role { kSystem, kDeveloper, kUser, kAssistant };
[[nodiscard]] std::string_view role_name(Role role);

struct ChatMessage {
  Role role = Role::kUser;
  std::string content;  ///< The text parts, joined.
  /// What an assistant thought before it said that; absent: the client has not kept it.
  std::optional<std::string> reasoning{};
  std::string name{};  ///< Of the participant; empty: none.
};

/// What follows the last message.
enum class PromptEnd {
  kAssistantTurn,  ///< The beginning of the assistant's answer.
  kAfterMessages,  ///< Nothing: the model says whose turn it is.
  kInLastMessage,  ///< Not even that message's end: it is continued.
};

struct Conversation {
  std::vector<ChatMessage> messages;  ///< 1 … 256
  PromptEnd end = PromptEnd::kAssistantTurn;
  /// Absent: as the server's settings and then the template have it.
  std::optional<bool> enable_thinking;
  std::string reasoning_effort;  ///< "none" … "high"; empty: not said.
  /// Further variables of the template: an object, bounded in size and depth, none of whose names
  /// stands for something that the server or the template itself sets.
  JsonValue template_arguments = JsonValue::object();
};

/// Reads the members a conversation consists of. Throws RequestError (400) naming the one at fault.
[[nodiscard]] Conversation read_conversation(Fields& fields);

/// One line "role: content" for each message, then "assistant:", unless `end` says otherwise. Plain
/// ASCII around the contents. `messages` is not empty.
[[nodiscard]] std::string plain_chat_prompt(const std::vector<ChatMessage>& messages,
                                            PromptEnd end = PromptEnd::kAssistantTurn);
/// The same as a Jinja template, for clients that build prompts themselves.
[[nodiscard]] std::string_view plain_chat_template();
/// What ends the assistant's turn under plain_chat_prompt(): the next message of the user.
[[nodiscard]] std::string_view plain_chat_stop();

}  // namespace spel::proto
