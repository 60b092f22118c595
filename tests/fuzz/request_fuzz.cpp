// Request bodies: whatever the bytes, a parser returns values in their documented ranges or throws
// RequestError whose body is valid JSON. The first byte picks the parser.
#include <cmath>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string_view>

#include "proto/chat.h"
#include "proto/completion.h"
#include "proto/error_body.h"
#include "proto/text_assembler.h"
#include "proto/tokenize.h"
#include "proto/vocabulary.h"
#include "tests/fuzz/require.h"

namespace {

using spel::fuzz::require;
namespace limits = spel::limits;
namespace proto = spel::proto;

bool within(double value, double min, double max) { return value >= min && value <= max; }

void check_options(const proto::GenerationOptions& options) {
  require(within(options.temperature.value_or(1.0F), 0.0, 2.0), "temperature");
  require(options.top_k.value_or(0) >= 0, "top_k");
  const float top_p = options.top_p.value_or(1.0F);
  require(top_p > 0.0F && top_p <= 1.0F, "top_p");
  require(within(options.min_p.value_or(0.0F), 0.0, 1.0), "min_p");
  const float repetition = options.repetition_penalty.value_or(1.0F);
  require(repetition > 0.0F && repetition <= 2.0F, "repetition_penalty");
  require(within(options.presence_penalty, -2.0, 2.0), "presence_penalty");
  require(within(options.frequency_penalty, -2.0, 2.0), "frequency_penalty");
  require(options.n >= 1 && options.n <= limits::kChoicesMax, "n");
  require(options.logprobs.value_or(0) <= limits::kTopLogprobsMax, "logprobs");
  require(options.logit_bias.size() <= limits::kLogitBiasMax, "logit_bias size");
  for (const auto& [id, bias] : options.logit_bias) {
    require(id >= 0 && within(bias, -100.0, 100.0), "logit_bias");
  }
  require(options.stop.size() <= limits::kStopStringsMax, "stop count");
  for (const auto& stop : options.stop) {
    require(!stop.empty() && stop.size() <= limits::kStopBytesMax && proto::is_valid_utf8(stop),
            "stop");
  }
  require(options.stop_token_ids.size() <= limits::kStopTokensMax, "stop_token_ids");
  require(options.speculation.k.value_or(0) <= limits::kSpecKMax, "speculation.k");
  require(within(options.speculation.alpha_threshold.value_or(0.5), 0.0, 1.0), "alpha_threshold");
  require(options.stream || !options.stream_options.include_usage, "stream_options");
  if (options.notebank) {
    require(spel::is_bank_name(options.notebank->bank), "bank");
    require(within(static_cast<double>(options.notebank->top), 1.0,
                   static_cast<double>(limits::kNoteTopMax)),
            "top");
  }
}

void check_completion(std::string_view body) {
  const auto request = proto::parse_completion_request(body);
  check_options(request.options);
  require(request.options.max_tokens.has_value(), "max_tokens");
  require(!request.prompts.empty() && request.prompts.size() <= limits::kPromptsMax, "prompts");
  for (const auto& prompt : request.prompts) {
    const bool empty = std::visit([](const auto& value) { return value.empty(); }, prompt);
    require(!empty, "prompt");
  }
  proto::check_token_ids(request, 128);
}

void check_chat(std::string_view body) {
  const auto request = proto::parse_chat_request(body);
  check_options(request.options);
  const proto::Conversation& chat = request.conversation;
  require(!chat.messages.empty() && chat.messages.size() <= limits::kMessagesMax, "messages");
  require(proto::is_valid_utf8(proto::plain_chat_prompt(chat.messages)), "chat prompt");
  require(chat.template_arguments.is_object() &&
              chat.template_arguments.size() <= limits::kTemplateArgumentsMax,
          "chat_template_kwargs");
  require(!chat.template_arguments.contains("messages"), "chat_template_kwargs");
  require(chat.reasoning_effort != "none" || !chat.enable_thinking.value_or(false),
          "reasoning_effort");
}

void check_detokenize(std::string_view body) {
  for (const auto id : proto::parse_detokenize_request(body).tokens) {
    require(id >= 0, "token id");
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) {
    return 0;
  }
  const std::string_view body(reinterpret_cast<const char*>(data) + 1, size - 1);
  try {
    switch (data[0] % 4) {
      case 0:
        check_completion(body);
        break;
      case 1:
        check_chat(body);
        break;
      case 2:
        static_cast<void>(proto::parse_tokenize_request(body));
        break;
      default:
        check_detokenize(body);
    }
  } catch (const proto::RequestError& error) {
    require(error.error().status == 400 || error.error().status == 413, "status");
    require(nlohmann::json::accept(proto::error_body(error.error())), "error body");
  }
  return 0;
}
