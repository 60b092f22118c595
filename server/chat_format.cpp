#include "server/chat_format.h"

#include <algorithm>
#include <utility>

#include "engine/template/chat_template.h"
#include "proto/error_body.h"
#include "server/translate.h"

namespace spel::server {
namespace {

using engine::MarkedText;
using engine::TemplateError;
using engine::TemplateValue;

/// Thinking is another answer than the one such a model gives.
void refuse_thoughts(const proto::Conversation& conversation) {
  if (conversation.enable_thinking.value_or(false)) {
    const std::string param =
        conversation.reasoning_effort.empty() ? "enable_thinking" : "reasoning_effort";
    throw proto::RequestError(proto::invalid_request(
        "\"" + param + "\" asks for thoughts, and this model has no way to mark them.", param,
        "unsupported_parameter"));
  }
}

/// A request's own value.
TemplateValue foreign_value(const JsonValue& json) {
  switch (json.type()) {
    case JsonValue::Kind::kNull:
      return TemplateValue::None();
    case JsonValue::Kind::kBoolean:
      return TemplateValue(json.get<bool>());
    case JsonValue::Kind::kInteger:
      return TemplateValue(json.get<std::int64_t>());
    case JsonValue::Kind::kUnsigned:
    case JsonValue::Kind::kFloat: {
      const auto number = json.get<double>();
      constexpr double kIntegerEnd = 9223372036854775808.0;
      return json.is_number_unsigned() && number < kIntegerEnd
                 ? TemplateValue(json.get<std::int64_t>())
                 : TemplateValue(number);
    }
    case JsonValue::Kind::kString:
      return TemplateValue::foreign(json.text());
    case JsonValue::Kind::kArray: {
      TemplateValue::List list;
      for (const JsonValue& element : json) {
        list.push_back(foreign_value(element));
      }
      return TemplateValue(std::move(list));
    }
    case JsonValue::Kind::kObject:
      break;
  }
  TemplateValue::Dict dict;
  for (const JsonValue::Member& member : json.items()) {
    dict.emplace_back(MarkedText(member.key, true), foreign_value(member.value));
  }
  return TemplateValue(std::move(dict));
}

void add(TemplateValue::Dict& dict, std::string name, TemplateValue value) {
  dict.emplace_back(MarkedText(std::move(name), false), std::move(value));
}

TemplateValue message_value(const proto::ChatMessage& message) {
  TemplateValue::Dict members;
  // Templates of such models know no developer.
  const proto::Role role =
      message.role == proto::Role::kDeveloper ? proto::Role::kSystem : message.role;
  add(members, "role", TemplateValue(proto::role_name(role)));
  add(members, "content", TemplateValue::foreign(message.content));
  if (message.reasoning) {
    add(members, "reasoning_content", TemplateValue::foreign(*message.reasoning));
  }
  if (!message.name.empty()) {
    add(members, "name", TemplateValue::foreign(message.name));
  }
  return TemplateValue(std::move(members));
}

/// Ends the last message where it is to be continued. No text has it: see open_end().
constexpr std::string_view kOpenEnd = "[the message goes on here: 5f2c]";

/// The prompt up to where the last message is to be continued.
MarkedText open_end(const MarkedText& prompt) {
  const std::size_t at = prompt.text.rfind(kOpenEnd);
  if (at == std::string::npos) {
    throw proto::RequestError(proto::invalid_request(
        "\"continue_final_message\": this model's template does not end with the message.",
        "continue_final_message", "invalid_value"));
  }
  return prompt.part(0, at);
}

/// The template's own words: what a request wrote opens no thought.
std::string own_words(const MarkedText& prompt) {
  std::string own = prompt.text;
  for (const ByteRange& range : prompt.foreign) {
    std::fill(own.begin() + static_cast<std::ptrdiff_t>(range.begin),
              own.begin() + static_cast<std::ptrdiff_t>(range.end), 'x');
  }
  return own;
}

std::size_t size_of(const proto::Conversation& conversation) {
  std::size_t size = 0;
  for (const proto::ChatMessage& message : conversation.messages) {
    size += message.content.size() + (message.reasoning ? message.reasoning->size() : 0);
  }
  return size;
}

}  // namespace

ChatFormat::ChatFormat() = default;

ChatFormat::ChatFormat(std::string_view source, const std::string& name,
                       const engine::Tokenizer& tokenizer, std::optional<bool> enable_thinking)
    : template_(std::make_unique<const engine::ChatTemplate>(source, name)),
      enable_thinking_(enable_thinking) {
  const auto text = [&](std::optional<engine::TokenId> token) {
    return token ? std::string(tokenizer.bytes(*token)) : std::string();
  };
  bos_ = text(tokenizer.bos());
  eos_ = text(tokenizer.eos());
  if (source.find(proto::kThinkClose) == std::string_view::npos) {
    return;
  }
  open_ = tokenizer.token_of(proto::kThinkOpen);
  close_ = tokenizer.token_of(proto::kThinkClose);
  if (close_) {
    close_tokens_ = tokenizer.encode("\n" + std::string(proto::kThinkClose) + "\n\n");
  }
}

ChatFormat::~ChatFormat() = default;
ChatFormat::ChatFormat(ChatFormat&&) noexcept = default;
ChatFormat& ChatFormat::operator=(ChatFormat&&) noexcept = default;

std::string_view ChatFormat::source() const noexcept {
  return template_ ? std::string_view(template_->source()) : proto::plain_chat_template();
}

ChatPrompt ChatFormat::prompt(proto::Conversation conversation,
                              const engine::Tokenizer& tokenizer) const {
  if (!thinks()) {
    refuse_thoughts(conversation);
  }
  ChatPrompt prompt;
  if (!template_) {
    prompt.stop = proto::plain_chat_stop();
    prompt.tokens = encode(
        tokenizer, proto::plain_chat_prompt(conversation.messages, conversation.end), "messages");
    return prompt;
  }
  const bool goes_on = conversation.end == proto::PromptEnd::kInLastMessage;
  if (goes_on) {
    conversation.messages.back().content += kOpenEnd;
  }
  TemplateValue::Dict variables;
  TemplateValue::List messages;
  for (const proto::ChatMessage& message : conversation.messages) {
    messages.push_back(message_value(message));
  }
  add(variables, "messages", TemplateValue(std::move(messages)));
  add(variables, "tools", TemplateValue::None());
  add(variables, "add_generation_prompt",
      TemplateValue(conversation.end == proto::PromptEnd::kAssistantTurn));
  add(variables, "bos_token", TemplateValue(std::string_view(bos_)));
  add(variables, "eos_token", TemplateValue(std::string_view(eos_)));
  const std::optional<bool> thinking =
      conversation.enable_thinking ? conversation.enable_thinking : enable_thinking_;
  if (thinking) {
    add(variables, "enable_thinking", TemplateValue(*thinking));
  }
  if (!conversation.reasoning_effort.empty()) {
    add(variables, "reasoning_effort", TemplateValue::foreign(conversation.reasoning_effort));
  }
  for (const JsonValue::Member& member : conversation.template_arguments.items()) {
    add(variables, member.key, foreign_value(member.value));
  }
  try {
    // A message passes through a template a few times.
    constexpr std::size_t kCopies = 32;
    const engine::TemplateLimits limits{.bytes = engine::TemplateLimits().bytes +
                                                 kCopies * size_of(conversation)};
    MarkedText text = template_->render(variables, limits);
    if (goes_on) {
      text = open_end(text);
    }
    if (thinks()) {
      prompt.thought = proto::thought_after(own_words(text));
    }
    prompt.tokens = encode(tokenizer, text.text, "messages", {.foreign = text.foreign});
  } catch (const TemplateError& error) {
    throw proto::RequestError(proto::invalid_request(
        error.what(), "messages",
        error.kind() == TemplateError::Kind::kLimit ? "template_limit" : "template_error"));
  }
  return prompt;
}

std::optional<engine::ThinkingBudget> ChatFormat::budget(proto::ThoughtStart thought,
                                                         std::size_t tokens_max) const {
  if (!close_ || thought == proto::ThoughtStart::kNone || tokens_max == 0) {
    return std::nullopt;
  }
  if (thought == proto::ThoughtStart::kPossible && !open_) {
    return std::nullopt;
  }
  return engine::ThinkingBudget{
      .tokens_max = tokens_max,
      .begin = thought == proto::ThoughtStart::kPossible ? open_ : std::nullopt,
      .end = *close_,
      .close = close_tokens_};
}

}  // namespace spel::server
