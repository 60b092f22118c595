#include "proto/conversation.h"

#include <algorithm>
#include <array>
#include <utility>

#include "config/base/limits.h"
#include "proto/error_body.h"
#include "proto/fields.h"
#include "proto/foreign_fields.h"

namespace spel::proto {

namespace {

using json = JsonValue;

constexpr std::array kRoles = {Role::kSystem, Role::kDeveloper, Role::kUser, Role::kAssistant};
constexpr std::array<std::string_view, 5> kEfforts = {"none", "minimal", "low", "medium", "high"};

/// Names a template finds set by the server, or that are the template language's own.
constexpr std::array<std::string_view, 21> kReservedNames = {
    "messages",      "tools",     "documents",       "add_generation_prompt",
    "bos_token",     "eos_token", "pad_token",       "unk_token",
    "chat_template", "tokenize",  "raise_exception", "continue_final_message",
    "strftime_now",  "namespace", "range",           "loop",
    "dict",          "cycler",    "joiner",          "lipsum",
    "self"};

[[noreturn]] void refuse(const std::string& param, const std::string& problem) {
  throw RequestError(invalid_request("\"" + param + "\" " + problem, param, "invalid_value"));
}

// --- Messages ------------------------------------------------------------------------------------

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

/// Under its two names: vLLM renamed it.
std::optional<std::string> read_reasoning(Fields& fields) {
  auto older = fields.text("reasoning_content", limits::kBodyBytesMax);
  auto newer = fields.text("reasoning", limits::kBodyBytesMax);
  if (older && newer && *older != *newer) {
    fields.fail("reasoning", "contradicts \"reasoning_content\".", "invalid_value");
  }
  return older ? std::move(older) : std::move(newer);
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
  auto reasoning = read_reasoning(fields);
  if (message.role == Role::kAssistant) {
    message.reasoning = std::move(reasoning);
  }
  message.name = fields.text("name", limits::kModelNameMax).value_or("");
  fields.ignore({"annotations", "cache_control"});
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

// --- How to go on --------------------------------------------------------------------------------

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

std::optional<std::string> read_effort(Fields& fields) {
  auto effort = fields.text("reasoning_effort", limits::kModelNameMax);
  if (effort && std::find(kEfforts.begin(), kEfforts.end(), *effort) == kEfforts.end()) {
    fields.fail("reasoning_effort", R"(must be "none", "minimal", "low", "medium" or "high".)",
                "invalid_value");
  }
  return effort;
}

bool is_variable_name(std::string_view name) {
  const auto is_letter = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
  };
  return !name.empty() && name.size() <= limits::kTemplateArgumentNameMax &&
         is_letter(name.front()) && std::all_of(name.begin(), name.end(), [&](char c) {
           return is_letter(c) || (c >= '0' && c <= '9');
         });
}

std::size_t depth_of(const json& value) {
  std::size_t deepest = 0;
  for (const json& element : value) {
    deepest = std::max(deepest, depth_of(element));
  }
  for (const json::Member& member : value.items()) {
    deepest = std::max(deepest, depth_of(member.value));
  }
  return value.is_structured() ? deepest + 1 : 0;
}

/// `own` and what a member beside it says, which must not be something else.
template <typename Value>
std::optional<Value> agreeing(Fields& fields, std::string_view name, std::optional<Value> own,
                              std::optional<Value> inside) {
  if (own && inside && *own != *inside) {
    fields.fail(name, "contradicts the one in \"chat_template_kwargs\".", "invalid_value");
  }
  return own ? std::move(own) : std::move(inside);
}

void read_template_arguments(Fields& fields, Conversation& conversation) {
  constexpr std::string_view kName = "chat_template_kwargs";
  auto enable = fields.boolean("enable_thinking");
  auto effort = read_effort(fields);
  if (auto members = fields.object(kName)) {
    enable = agreeing(fields, "enable_thinking", enable, members->boolean("enable_thinking"));
    effort = agreeing(fields, "reasoning_effort", std::move(effort), read_effort(*members));
    const json& object = *fields.find(kName);
    if (object.size() > limits::kTemplateArgumentsMax ||
        depth_of(object) > limits::kTemplateArgumentsDepthMax ||
        dump_json(object).size() > limits::kTemplateArgumentsBytesMax) {
      fields.fail(kName,
                  "must not have more than " + std::to_string(limits::kTemplateArgumentsMax) +
                      " members, " + std::to_string(limits::kTemplateArgumentsDepthMax) +
                      " levels or " + std::to_string(limits::kTemplateArgumentsBytesMax) +
                      " bytes.",
                  "invalid_value");
    }
    members->visit_unasked([&](const std::string& name) {
      if (std::find(kReservedNames.begin(), kReservedNames.end(), name) != kReservedNames.end()) {
        members->fail(name, "is not for a request to set.", "unsupported_parameter");
      }
      if (!is_variable_name(name)) {
        fields.fail(kName,
                    "may only have names of letters, digits and \"_\", at most " +
                        std::to_string(limits::kTemplateArgumentNameMax) + " long.",
                    "invalid_value");
      }
      conversation.template_arguments.add_member(name, *object.find(name));
    });
  }
  if (effort == "none" && enable.value_or(false)) {
    fields.fail("reasoning_effort", R"("none" contradicts "enable_thinking": true.)",
                "invalid_value");
  }
  conversation.enable_thinking =
      enable || !effort ? enable : std::optional(*effort != kEfforts.front());
  conversation.reasoning_effort = effort.value_or("");
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

Conversation read_conversation(Fields& fields) {
  Conversation conversation;
  conversation.messages = read_messages(fields);
  conversation.end = read_end(fields);
  read_template_arguments(fields, conversation);
  return conversation;
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
