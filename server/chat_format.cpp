#include "server/chat_format.h"

#include "proto/error_body.h"
#include "server/translate.h"

namespace spel::server {
namespace {

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

}  // namespace

std::string_view ChatFormat::source() const noexcept { return proto::plain_chat_template(); }

ChatPrompt ChatFormat::prompt(proto::Conversation conversation,
                              const engine::Tokenizer& tokenizer) const {
  refuse_thoughts(conversation);
  ChatPrompt prompt;
  prompt.stop = proto::plain_chat_stop();
  prompt.tokens = encode(
      tokenizer, proto::plain_chat_prompt(conversation.messages, conversation.end), "messages");
  return prompt;
}

}  // namespace spel::server
