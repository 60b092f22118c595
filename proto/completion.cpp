#include "proto/completion.h"

#include <string>
#include <utility>

#include "proto/fields.h"
#include "proto/generation_fields.h"

namespace spel::proto {

namespace {

using json = JsonValue;

constexpr std::size_t kMaxTokensDefault = 16;
constexpr std::string_view kPrompt = "prompt";

[[noreturn]] void fail_forms(const Fields& fields) {
  fields.fail(kPrompt,
              "must be a string, an array of strings, an array of token ids or an array of such "
              "arrays, not mixed.",
              "invalid_value");
}

[[noreturn]] void fail_empty(const Fields& fields) {
  fields.fail(kPrompt, "must not be empty.", "empty_prompt");
}

Prompt read_text(const Fields& fields, const json& value) {
  const auto& text = value.text();
  if (text.empty()) {
    fail_empty(fields);
  }
  return text;
}

Prompt read_ids(const Fields& fields, const json& value, const std::string& param) {
  if (value.empty()) {
    fail_empty(fields);
  }
  return read_token_ids(value, param);
}

std::vector<Prompt> read_prompts(Fields& fields) {
  const json* value = fields.find(kPrompt);
  if (value == nullptr) {
    fields.fail(kPrompt, "is required.", "missing_parameter");
  }
  std::vector<Prompt> prompts;
  if (value->is_string()) {
    prompts.push_back(read_text(fields, *value));
    return prompts;
  }
  if (!value->is_array()) {
    fail_forms(fields);
  }
  if (value->empty()) {
    fail_empty(fields);
  }
  const json& first = value->front();
  if (!first.is_string() && !first.is_array()) {
    for (const auto& element : *value) {
      if (element.is_string() || element.is_structured()) {
        fail_forms(fields);
      }
    }
    prompts.push_back(read_ids(fields, *value, std::string(kPrompt)));
    return prompts;
  }
  if (value->size() > limits::kPromptsMax) {
    fields.fail(kPrompt,
                "must not have more than " + std::to_string(limits::kPromptsMax) + " prompts.",
                "invalid_value");
  }
  for (const auto& element : *value) {
    if (element.type() != first.type()) {
      fail_forms(fields);
    }
    prompts.push_back(element.is_string() ? read_text(fields, element)
                                          : read_ids(fields, element, std::string(kPrompt)));
  }
  return prompts;
}

}  // namespace

CompletionRequest parse_completion_request(std::string_view body, const JsonLimits& limits) {
  JsonObject object = parse_json_object(body, limits);
  Fields fields(object);
  return read_completion(fields);
}

CompletionRequest read_completion(Fields& fields, const std::string& bank) {
  CompletionRequest request;
  request.prompts = read_prompts(fields);
  request.echo = fields.boolean("echo").value_or(false);
  request.parse_special = fields.boolean("parse_special").value_or(true);
  request.options.max_tokens = read_max_tokens(fields).value_or(kMaxTokensDefault);
  request.options.logprobs = fields.count("logprobs", 0, limits::kTopLogprobsMax);
  read_generation_options(fields, Endpoints::kCompletions, request.options, bank);
  request.options.unknown_fields += fields.unknown();
  return request;
}

}  // namespace spel::proto
