// From a request of the wire to requests for the engine.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "config/server_config.h"
#include "engine/request/request.h"
#include "proto/chat.h"
#include "proto/completion.h"
#include "proto/reasoning.h"
#include "proto/receipt.h"
#include "server/backend.h"

namespace spel::server {

/// One choice of an answer.
struct PlannedChoice {
  engine::GenerationRequest request;
  /// Its prompt is not that of the choice before: its tokens are counted.
  bool new_prompt = true;
  std::string echo;  ///< The prompt's text, when the choice begins with it.
};

/// What a client asked for, ready to be submitted.
struct GenerationPlan {
  std::vector<PlannedChoice> choices;
  bool echo = false;
  bool stream = false;
  bool include_usage = false;
  bool continuous_usage = false;
  bool with_logprobs = false;
  bool with_token_ids = false;
  std::size_t normalized_characters = 0;  ///< For the receipt.
  std::vector<proto::ReplayReport> replays;
  std::size_t logprob_entries = 0;  ///< Held at once, over all choices.
  std::string own_stop;  ///< A stop string the client did not ask for and is not told about.
  // Of a chat with a model that marks its thoughts.
  proto::ThoughtStart thought = proto::ThoughtStart::kNone;
  proto::ReasoningForm reasoning = proto::ReasoningForm::kApart;
};

/// Replaces typographic characters in the texts of a request, stop strings included, by what
/// normalize_text() has for them. Returns how many of the prompts' were.
std::size_t normalize_texts(proto::CompletionRequest& request);
std::size_t normalize_texts(proto::ChatRequest& request);

/// Throw proto::RequestError: 404 for another model, 400 with both counts for a prompt that does
/// not fit, 400 for ids outside the vocabulary, text without tokens or more choices than the server
/// can ever hold. Nothing has been submitted then.
[[nodiscard]] GenerationPlan plan_completion(proto::CompletionRequest request,
                                             const Backend& backend,
                                             const config::ServerConfig& config);
[[nodiscard]] GenerationPlan plan_chat(proto::ChatRequest request, const Backend& backend,
                                       const config::ServerConfig& config);

/// The seed of a choice: the client's own for the first of the first prompt, so that it gives what
/// a request for one choice gives, and another one for each other place. Prompts must not share
/// seeds: where their logits agree they would choose alike.
[[nodiscard]] std::uint64_t choice_seed(std::uint64_t seed, std::size_t prompt, std::size_t choice);

}  // namespace spel::server
