#include "proto/responses.h"

#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>

#include "proto/json_text.h"
#include "proto/logprobs.h"

namespace spel::proto {

namespace {

using nlohmann::ordered_json;

ordered_json start(const ResponseHead& head, std::string_view object) {
  ordered_json body = {
      {"id", head.id}, {"object", object}, {"created", head.created}, {"model", head.model}};
  if (!head.system_fingerprint.empty()) {
    body["system_fingerprint"] = head.system_fingerprint;
  }
  return body;
}

ordered_json finish_reason_json(const Choice& choice) {
  if (!choice.finish_reason) {
    return nullptr;
  }
  return *choice.finish_reason == FinishReason::kStop ? "stop" : "length";
}

/// vLLM's: the string, or the token id, or null for the end the model itself chose.
ordered_json stop_reason_json(const Choice& choice) {
  if (choice.stop_token) {
    return *choice.stop_token;
  }
  return choice.stop_reason.empty() ? ordered_json(nullptr) : ordered_json(choice.stop_reason);
}

/// The members completions and chat share, after their own.
void add_choice_tail(ordered_json& json, const Choice& choice) {
  json["finish_reason"] = finish_reason_json(choice);
  if (choice.finish_reason) {
    json["stop_reason"] = stop_reason_json(choice);
  }
  if (choice.with_token_ids) {
    ordered_json ids = ordered_json::array();
    for (const auto& token : choice.tokens) {
      ids.push_back(token.token);
    }
    json["token_ids"] = std::move(ids);
  }
  if (!choice.draft_positions.empty()) {
    ordered_json offsets = ordered_json::array();
    for (const auto& token : choice.tokens) {
      offsets.push_back(token.text_offset);
    }
    json["spel"] = {{"draft_positions", choice.draft_positions},
                    {"text_offsets", std::move(offsets)}};
  }
}

ordered_json completion_choice(const Choice& choice) {
  ordered_json json = {{"index", choice.index},
                       {"text", choice.text},
                       {"logprobs", choice.with_logprobs ? legacy_logprobs_json(choice.tokens)
                                                         : ordered_json(nullptr)}};
  add_choice_tail(json, choice);
  return json;
}

ordered_json chat_choice(const Choice& choice, std::string_view member, ordered_json content) {
  ordered_json json = {{"index", choice.index},
                       {member, std::move(content)},
                       {"logprobs", choice.with_logprobs ? chat_logprobs_json(choice.tokens)
                                                         : ordered_json(nullptr)}};
  add_choice_tail(json, choice);
  return json;
}

void add_receipt(ordered_json& body, const Receipt& receipt) {
  body["usage"] = usage_json(receipt);
  body["timings"] = timings_json(receipt);
  body["speculation"] = speculation_json(receipt);
  if (!receipt.replays.empty()) {
    body["notebank"] = replays_json(receipt);
  }
}

std::string finish_chunk(ordered_json body, ordered_json choices, const ChunkTail& tail) {
  body["choices"] = std::move(choices);
  if (tail.receipt != nullptr) {
    add_receipt(body, *tail.receipt);
  } else if (tail.usage) {
    body["usage"] = {{"prompt_tokens", tail.usage->prompt_tokens},
                     {"completion_tokens", tail.usage->completion_tokens},
                     {"total_tokens", tail.usage->prompt_tokens + tail.usage->completion_tokens}};
  } else if (tail.usage_null) {
    body["usage"] = nullptr;
  }
  return dump_json(body);
}

ordered_json one(ordered_json choice) {
  ordered_json choices = ordered_json::array();
  choices.push_back(std::move(choice));
  return choices;
}

ordered_json model_json(const ModelCard& card) {
  return {{"id", card.id},
          {"object", "model"},
          {"created", card.created},
          {"owned_by", "spel"},
          {"max_model_len", card.max_seq},
          {"meta",
           {{"n_vocab", card.vocab_size},
            {"n_params", card.parameters},
            {"n_params_draft", card.draft_parameters},
            {"size", card.bytes}}}};
}

constexpr std::string_view kCompletion = "text_completion";
constexpr std::string_view kChat = "chat.completion";
constexpr std::string_view kChatChunk = "chat.completion.chunk";

}  // namespace

std::string completion_response(const ResponseHead& head, const std::vector<Choice>& choices,
                                const Receipt& receipt) {
  ordered_json body = start(head, kCompletion);
  ordered_json list = ordered_json::array();
  for (const auto& choice : choices) {
    list.push_back(completion_choice(choice));
  }
  body["choices"] = std::move(list);
  add_receipt(body, receipt);
  return dump_json(body);
}

std::string completion_chunk(const ResponseHead& head, const Choice& choice,
                             const ChunkTail& tail) {
  return finish_chunk(start(head, kCompletion), one(completion_choice(choice)), tail);
}

std::string completion_usage_chunk(const ResponseHead& head, const Receipt& receipt) {
  return finish_chunk(start(head, kCompletion), ordered_json::array(), {.receipt = &receipt});
}

std::string chat_response(const ResponseHead& head, const std::vector<Choice>& choices,
                          const Receipt& receipt) {
  ordered_json body = start(head, kChat);
  ordered_json list = ordered_json::array();
  for (const auto& choice : choices) {
    ordered_json message = {{"role", "assistant"}, {"content", choice.text}, {"refusal", nullptr}};
    list.push_back(chat_choice(choice, "message", std::move(message)));
  }
  body["choices"] = std::move(list);
  add_receipt(body, receipt);
  return dump_json(body);
}

std::string chat_role_chunk(const ResponseHead& head, std::size_t index, const ChunkTail& tail) {
  Choice choice;
  choice.index = index;
  ordered_json delta = {{"role", "assistant"}, {"content", ""}};
  return finish_chunk(start(head, kChatChunk), one(chat_choice(choice, "delta", std::move(delta))),
                      tail);
}

std::string chat_chunk(const ResponseHead& head, const Choice& choice, const ChunkTail& tail) {
  ordered_json delta = ordered_json::object();
  if (!choice.text.empty()) {
    delta["content"] = choice.text;
  }
  return finish_chunk(start(head, kChatChunk), one(chat_choice(choice, "delta", std::move(delta))),
                      tail);
}

std::string chat_usage_chunk(const ResponseHead& head, const Receipt& receipt) {
  return finish_chunk(start(head, kChatChunk), ordered_json::array(), {.receipt = &receipt});
}

std::string models_response(const ModelCard& card) {
  return dump_json(ordered_json{{"object", "list"}, {"data", one(model_json(card))}});
}

std::string model_response(const ModelCard& card) { return dump_json(model_json(card)); }

}  // namespace spel::proto
