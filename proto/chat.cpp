#include "proto/chat.h"

#include "proto/fields.h"
#include "proto/generation_fields.h"

namespace spel::proto {

namespace {

/// Chat asks in two fields for what completions ask in one.
std::optional<std::size_t> read_logprobs(Fields& fields) {
  const bool wanted = fields.boolean("logprobs").value_or(false);
  const auto top = fields.count("top_logprobs", 0, limits::kTopLogprobsMax);
  if (top && !wanted) {
    fields.fail("top_logprobs", "is only allowed with \"logprobs\": true.", "invalid_value");
  }
  return wanted ? std::optional(top.value_or(0)) : std::nullopt;
}

/// vLLM's name and that of Qwen's own service.
std::optional<std::size_t> read_thinking_budget(Fields& fields) {
  const auto budget = fields.count("thinking_budget", 0, kMaxTokensMax);
  const auto other = fields.count("thinking_token_budget", 0, kMaxTokensMax);
  if (budget && other && *budget != *other) {
    fields.fail("thinking_token_budget", "contradicts \"thinking_budget\".", "invalid_value");
  }
  return budget ? budget : other;
}

/// In the words of vLLM, SGLang and llama.cpp.
std::optional<ReasoningForm> read_reasoning_form(Fields& fields) {
  if (!fields.boolean("include_reasoning").value_or(true)) {
    return ReasoningForm::kLeftOut;
  }
  std::optional<ReasoningForm> form;
  if (const auto separate = fields.boolean("separate_reasoning")) {
    form = *separate ? ReasoningForm::kApart : ReasoningForm::kInText;
  }
  if (const auto format = fields.text("reasoning_format", limits::kModelNameMax)) {
    if (*format == "none") {
      form = ReasoningForm::kInText;
    } else if (*format == "deepseek") {
      form = ReasoningForm::kApart;
    } else if (*format != "auto") {
      fields.fail("reasoning_format", R"(must be "auto", "none" or "deepseek".)", "invalid_value");
    }
  }
  return form;
}

}  // namespace

ChatRequest parse_chat_request(std::string_view body, const JsonLimits& limits) {
  JsonObject object = parse_json_object(body, limits);
  Fields fields(object);
  ChatRequest request;
  request.conversation = read_conversation(fields);
  request.thinking_budget = read_thinking_budget(fields);
  request.reasoning = read_reasoning_form(fields);
  request.options.max_tokens = read_max_tokens(fields);
  request.options.logprobs = read_logprobs(fields);
  read_generation_options(fields, Endpoints::kChat, request.options);
  request.options.unknown_fields += fields.unknown();
  return request;
}

}  // namespace spel::proto
