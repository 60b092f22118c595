// How a conversation becomes the prompt of the resident model.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "engine/text/tokenizer.h"
#include "proto/conversation.h"
#include "proto/reasoning.h"

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
  /// The model marks its thoughts, and can be asked for them.
  [[nodiscard]] bool thinks() const noexcept { return false; }
  /// prompt() may take long, however short the conversation.
  [[nodiscard]] bool runs_a_template() const noexcept { return false; }
  /// Jinja, for clients that build prompts themselves.
  [[nodiscard]] std::string_view source() const noexcept;

  /// Throws proto::RequestError (400): text without tokens, thoughts asked of a model that has
  /// none.
  [[nodiscard]] ChatPrompt prompt(proto::Conversation conversation,
                                  const engine::Tokenizer& tokenizer) const;
};

}  // namespace spel::server
