// How a conversation becomes the prompt of the resident model.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/request/request.h"
#include "engine/text/tokenizer.h"
#include "proto/conversation.h"
#include "proto/reasoning.h"

namespace spel::engine {
class ChatTemplate;
}  // namespace spel::engine

namespace spel::server {

struct ChatPrompt {
  std::vector<engine::TokenId> tokens;
  /// Where the answer begins; kNone of a model that does not mark its thoughts.
  proto::ThoughtStart thought = proto::ThoughtStart::kNone;
  std::string stop;  ///< A stop string the format needs; empty: the model ends its turns itself.
};

/// Immutable, safe from any thread.
class ChatFormat {
 public:
  /// Of a model that brings no template: a line for each message.
  ChatFormat();
  /// `source` is Jinja, which messages call `name`. `enable_thinking`: what a template is told
  /// where a request does not say; absent: nothing. Throws engine::TemplateSyntaxError.
  ChatFormat(std::string_view source, const std::string& name, const engine::Tokenizer& tokenizer,
             std::optional<bool> enable_thinking);
  ~ChatFormat();
  ChatFormat(ChatFormat&&) noexcept;
  ChatFormat& operator=(ChatFormat&&) noexcept;

  /// The model marks its thoughts, and can be asked for them.
  [[nodiscard]] bool thinks() const noexcept { return close_.has_value(); }
  /// prompt() may take long, however short the conversation.
  [[nodiscard]] bool runs_a_template() const noexcept { return template_ != nullptr; }
  /// Jinja, for clients that build prompts themselves.
  [[nodiscard]] std::string_view source() const noexcept;

  /// No byte of the conversation becomes a token that was added to the vocabulary. Throws
  /// proto::RequestError (400): text without tokens, thoughts asked of a model that has none, what
  /// the template itself refuses, in its words, and what it takes too long or too much memory for.
  [[nodiscard]] ChatPrompt prompt(proto::Conversation conversation,
                                  const engine::Tokenizer& tokenizer) const;

  /// For an answer that begins at `thought`: after `tokens_max` tokens its thought is closed. None
  /// where there is none to close.
  [[nodiscard]] std::optional<engine::ThinkingBudget> budget(proto::ThoughtStart thought,
                                                             std::size_t tokens_max) const;

 private:
  std::unique_ptr<const engine::ChatTemplate> template_;
  std::string bos_;
  std::string eos_;
  std::optional<bool> enable_thinking_;
  std::optional<engine::TokenId> open_;
  std::optional<engine::TokenId> close_;
  std::vector<engine::TokenId> close_tokens_;  ///< What a model writes around its closing tag.
};

}  // namespace spel::server
