#include "proto/chat.h"

#include <array>
#include <optional>
#include <utility>

#include "proto/error_body.h"
#include "proto/fields.h"
#include "proto/generation_fields.h"

namespace spel::proto {

namespace {

using json = JsonValue;

constexpr std::array kRoles = {Role::kSystem, Role::kDeveloper, Role::kUser, Role::kAssistant};

[[noreturn]] void refuse(const std::string& param, const std::string& problem) {
  throw RequestError(invalid_request("\"" + param + "\" " + problem, param, "invalid_value"));
}

Role read_role(Fields& fields) {
  const auto name = fields.text("role", limits::kModelNameMax);
  for (const auto role : kRoles) {
    if (name == role_name(role)) {
      return role;
    }
  }
  fields.fail("role", R"(must be "system", "developer", "user" or "assistant".)", "invalid_value");
}

std::string read_content(Fields& fields, Role role) {
  const json* content = fields.find("content");
  if (content == nullptr) {
    if (role == Role::kAssistant) {
      return {};  // What a turn without text looks like when it is sent back.
    }
    fields.fail("content", "is required.", "missing_parameter");
  }
  if (content->is_string()) {
    return content->text();
  }
  if (!content->is_array() || content->empty()) {
    fields.fail("content", "must be a string or an array of text parts.", "invalid_value");
  }
  std::string text;
  for (const auto& part : *content) {
    if (!part.is_object()) {
      fields.fail("content", "must be a string or an array of text parts.", "invalid_value");
    }
    Fields members(part, fields.param("content."));
    const auto type = members.text("type", limits::kModelNameMax);
    if (type != "text") {
      fields.fail("content", "may only have parts of type \"text\".", "unsupported_parameter");
    }
    const auto piece = members.text("text", limits::kBodyBytesMax);
    if (!piece) {
      members.fail("text", "is required.", "missing_parameter");
    }
    members.ignore({"annotations", "cache_control"});
    members.refuse_unknown();
    text += *piece;
  }
  return text;
}

ChatMessage read_message(Fields& fields) {
  for (const std::string_view name :
       {"tool_calls", "tool_call_id", "function_call", "audio", "refusal", "prefix", "partial"}) {
    const json* value = fields.find(name);
    if (value != nullptr && !asks_for_nothing(*value)) {
      fields.fail(name, "is not supported by this server.", "unsupported_parameter");
    }
  }
  ChatMessage message;
  message.role = read_role(fields);
  message.content = read_content(fields, message.role);
  // The template has no place for a name; the others come back with an assistant's earlier turn.
  fields.ignore({"name", "annotations", "reasoning", "reasoning_content", "cache_control"});
  fields.refuse_unknown();
  return message;
}

std::vector<ChatMessage> read_messages(Fields& fields) {
  const json* value = fields.find("messages");
  if (value == nullptr) {
    fields.fail("messages", "is required.", "missing_parameter");
  }
  if (!value->is_array() || value->empty() || value->size() > limits::kMessagesMax) {
    fields.fail("messages",
                "must be an array of 1 to " + std::to_string(limits::kMessagesMax) + " messages.",
                "invalid_value");
  }
  std::vector<ChatMessage> messages;
  messages.reserve(value->size());
  for (const auto& element : *value) {
    const std::string param = "messages[" + std::to_string(messages.size()) + "]";
    if (!element.is_object()) {
      refuse(param, "must be an object with \"role\" and \"content\".");
    }
    Fields members(element, param + ".");
    messages.push_back(read_message(members));
  }
  return messages;
}

/// Chat asks in two fields for what completions ask in one.
std::optional<std::size_t> read_logprobs(Fields& fields) {
  const bool wanted = fields.boolean("logprobs").value_or(false);
  const auto top = fields.count("top_logprobs", 0, limits::kTopLogprobsMax);
  if (top && !wanted) {
    fields.fail("top_logprobs", "is only allowed with \"logprobs\": true.", "invalid_value");
  }
  return wanted ? std::optional(top.value_or(0)) : std::nullopt;
}

/// Where the prompt stops: vLLM's and transformers' two switches.
PromptEnd read_end(Fields& fields) {
  const auto turn = fields.boolean("add_generation_prompt");
  if (!fields.boolean("continue_final_message").value_or(false)) {
    return turn.value_or(true) ? PromptEnd::kAssistantTurn : PromptEnd::kAfterMessages;
  }
  if (turn.value_or(false)) {
    fields.fail("continue_final_message",
                R"(contradicts "add_generation_prompt": the last message is open or it is not.)",
                "invalid_value");
  }
  return PromptEnd::kInLastMessage;
}

}  // namespace

std::string_view role_name(Role role) {
  switch (role) {
    case Role::kSystem:
      return "system";
    case Role::kDeveloper:
      return "developer";
    case Role::kUser:
      return "user";
    case Role::kAssistant:
      return "assistant";
  }
  return "user";
}

ChatRequest parse_chat_request(std::string_view body, const JsonLimits& limits) {
  JsonObject object = parse_json_object(body, limits);
  Fields fields(object);
  ChatRequest request;
  request.messages = read_messages(fields);
  request.options.max_tokens = read_max_tokens(fields);
  request.options.logprobs = read_logprobs(fields);
  request.end = read_end(fields);
  read_generation_options(fields, Endpoints::kChat, request.options);
  request.options.unknown_fields += fields.unknown();
  return request;
}

std::string plain_chat_prompt(const std::vector<ChatMessage>& messages, PromptEnd end) {
  std::string prompt;
  for (const auto& message : messages) {
    prompt += role_name(message.role);
    prompt += ": ";
    prompt += message.content;
    prompt += '\n';
  }
  if (end == PromptEnd::kInLastMessage) {
    prompt.pop_back();
  } else if (end == PromptEnd::kAssistantTurn) {
    prompt += role_name(Role::kAssistant);
    prompt += ':';
  }
  return prompt;
}

std::string_view plain_chat_template() {
  return "{% for message in messages %}{{ message['role'] + ': ' + message['content'] }}"
         "{% if not (loop.last and continue_final_message) %}{{ '\\n' }}{% endif %}{% endfor %}"
         "{% if add_generation_prompt %}{{ 'assistant:' }}{% endif %}";
}

std::string_view plain_chat_stop() { return "\nuser:"; }

}  // namespace spel::proto
