#include "proto/responses.h"

#include <string_view>
#include <utility>

#include "proto/error_body.h"
#include "proto/json_text.h"

namespace spel::proto {

namespace {

JsonValue start(const ResponseHead& head, std::string_view object) {
  JsonValue body = {
      {"id", head.id}, {"object", object}, {"created", head.created}, {"model", head.model}};
  if (!head.system_fingerprint.empty()) {
    body["system_fingerprint"] = head.system_fingerprint;
  }
  return body;
}

JsonValue finish_reason_json(const Choice& choice) {
  return choice.finish_reason ? JsonValue(name_of(*choice.finish_reason)) : JsonValue(nullptr);
}

/// vLLM's: the string, or the token id, or null for the end the model itself chose.
JsonValue stop_reason_json(const Choice& choice) {
  if (choice.stop_token) {
    return *choice.stop_token;
  }
  return choice.stop_reason.empty() ? JsonValue(nullptr) : JsonValue(choice.stop_reason);
}

/// The members completions and chat share, after their own.
void add_choice_tail(JsonValue& json, const Choice& choice) {
  json["finish_reason"] = finish_reason_json(choice);
  if (choice.finish_reason) {
    json["stop_reason"] = stop_reason_json(choice);
  }
  if (choice.with_token_ids) {
    JsonValue ids = JsonValue::array();
    for (const auto& token : choice.tokens) {
      ids.push_back(token.token);
    }
    json["token_ids"] = std::move(ids);
  }
  if (!choice.draft_positions.empty()) {
    JsonValue offsets = JsonValue::array();
    for (const auto& token : choice.tokens) {
      offsets.push_back(token.text_offset);
    }
    json["spel"] = {{"draft_positions", choice.draft_positions},
                    {"text_offsets", std::move(offsets)}};
  }
}

JsonValue completion_choice(const Choice& choice) {
  JsonValue json = {{"index", choice.index},
                    {"text", choice.text},
                    {"logprobs", choice.with_logprobs ? legacy_logprobs_json(choice.tokens)
                                                      : JsonValue(nullptr)}};
  add_choice_tail(json, choice);
  return json;
}

JsonValue chat_choice(const Choice& choice, std::string_view member, JsonValue content) {
  JsonValue json = {
      {"index", choice.index},
      {member, std::move(content)},
      {"logprobs", choice.with_logprobs ? chat_logprobs_json(choice.tokens) : JsonValue(nullptr)}};
  add_choice_tail(json, choice);
  return json;
}

void add_receipt(JsonValue& body, const Receipt& receipt) {
  body["usage"] = usage_json(receipt);
  body["timings"] = timings_json(receipt);
  body["speculation"] = speculation_json(receipt);
  if (!receipt.replays.empty()) {
    body["notebank"] = replays_json(receipt);
  }
}

std::string finish_chunk(JsonValue body, JsonValue choices, const ChunkTail& tail) {
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

JsonValue one(JsonValue choice) {
  JsonValue choices = JsonValue::array();
  choices.push_back(std::move(choice));
  return choices;
}

JsonValue model_json(const ModelCard& card) {
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

void WholeAnswer::begin(std::string& out) const {
  write_json(start(head_, kind_ == Kind::kChat ? kChat : kCompletion), out);
  out.back() = ',';  // In place of the object's end.
  out += R"("choices":[)";
}

void WholeAnswer::add(const Choice& choice, std::string& out) {
  out += std::exchange(first_, false) ? "" : ",";
  if (kind_ == Kind::kCompletion) {
    write_json(completion_choice(choice), out);
    return;
  }
  // A thought that was cut off has no content behind it: null, as in vLLM.
  const bool only_thought = choice.text.empty() && !choice.reasoning.empty();
  JsonValue message = {{"role", "assistant"},
                       {"content", only_thought ? JsonValue(nullptr) : JsonValue(choice.text)},
                       {"refusal", nullptr}};
  if (!choice.reasoning.empty()) {
    message["reasoning_content"] = choice.reasoning;
  }
  write_json(chat_choice(choice, "message", std::move(message)), out);
}

void WholeAnswer::end(const Receipt& receipt, std::string& out) {
  JsonValue tail = JsonValue::object();
  add_receipt(tail, receipt);
  out += ']';
  const std::size_t brace = out.size();
  write_json(tail, out);
  out[brace] = ',';  // The members go on.
}

std::string completion_chunk(const ResponseHead& head, const Choice& choice,
                             const ChunkTail& tail) {
  return finish_chunk(start(head, kCompletion), one(completion_choice(choice)), tail);
}

std::string completion_usage_chunk(const ResponseHead& head, const Receipt& receipt) {
  return finish_chunk(start(head, kCompletion), JsonValue::array(), {.receipt = &receipt});
}

std::string chat_role_chunk(const ResponseHead& head, std::size_t index, const ChunkTail& tail) {
  Choice choice;
  choice.index = index;
  JsonValue delta = {{"role", "assistant"}, {"content", ""}};
  return finish_chunk(start(head, kChatChunk), one(chat_choice(choice, "delta", std::move(delta))),
                      tail);
}

std::string chat_chunk(const ResponseHead& head, const Choice& choice, const ChunkTail& tail) {
  JsonValue delta = JsonValue::object();
  if (!choice.reasoning.empty()) {
    delta["reasoning_content"] = choice.reasoning;
  }
  if (!choice.text.empty()) {
    delta["content"] = choice.text;
  }
  return finish_chunk(start(head, kChatChunk), one(chat_choice(choice, "delta", std::move(delta))),
                      tail);
}

std::string chat_usage_chunk(const ResponseHead& head, const Receipt& receipt) {
  return finish_chunk(start(head, kChatChunk), JsonValue::array(), {.receipt = &receipt});
}

std::string health_body() { return R"({"status":"ok"})"; }

std::string health_unavailable_body(std::string_view state) {
  return error_body(unavailable("The server is " + std::string(state) + ".", std::string(state)));
}

std::string models_response(const ModelCard& card) {
  return dump_json(JsonValue{{"object", "list"}, {"data", one(model_json(card))}});
}

std::string model_response(const ModelCard& card) { return dump_json(model_json(card)); }

}  // namespace spel::proto
