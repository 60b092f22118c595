#include "proto/tokenize.h"

#include <nlohmann/json.hpp>
#include <utility>

#include "proto/chat.h"
#include "proto/fields.h"
#include "proto/generation_fields.h"
#include "proto/text_assembler.h"

namespace spel::proto {

using nlohmann::json;
using nlohmann::ordered_json;

TokenizeRequest parse_tokenize_request(std::string_view body, const JsonLimits& limits) {
  const json object = parse_json_object(body, limits);
  Fields fields(object);
  auto content = fields.text("content", limits.bytes);
  auto prompt = fields.text("prompt", limits.bytes);
  if (!content && !prompt) {
    fields.fail("content", "is required.", "missing_parameter");
  }
  if (content && prompt) {
    fields.fail("prompt", "is another name for \"content\": send one of them.", "invalid_value");
  }
  TokenizeRequest request;
  request.content = content ? std::move(*content) : std::move(*prompt);
  static_cast<void>(fields.find("model"));  // There is only one.
  // llama.cpp's name, and vLLM's, whose default of true makes no difference to a model without any.
  request.add_special = fields.boolean("add_special").value_or(false);
  request.add_special = fields.boolean("add_special_tokens").value_or(request.add_special);
  request.with_pieces = fields.boolean("with_pieces").value_or(false);
  request.unknown_fields = fields.unknown();
  return request;
}

DetokenizeRequest parse_detokenize_request(std::string_view body, const JsonLimits& limits) {
  const json object = parse_json_object(body, limits);
  Fields fields(object);
  const json* tokens = fields.find("tokens");
  if (tokens == nullptr) {
    fields.fail("tokens", "is required.", "missing_parameter");
  }
  if (!tokens->is_array()) {
    fields.fail("tokens", "must be an array of token ids.", "invalid_value");
  }
  DetokenizeRequest request;
  request.tokens = read_token_ids(*tokens, "tokens");
  static_cast<void>(fields.find("model"));
  request.unknown_fields = fields.unknown();
  return request;
}

void check_token_ids(const DetokenizeRequest& request, std::size_t vocab_size) {
  require_in_vocabulary(request.tokens, vocab_size, "tokens");
}

std::string tokenize_response(const std::vector<TokenPiece>& tokens, bool with_pieces,
                              std::size_t max_seq) {
  ordered_json list = ordered_json::array();
  for (const auto& token : tokens) {
    if (!with_pieces) {
      list.push_back(token.id);
      continue;
    }
    ordered_json piece;
    if (is_valid_utf8(token.bytes)) {
      piece = token.bytes;
    } else {
      piece = ordered_json::array();
      for (const char byte : token.bytes) {
        piece.push_back(static_cast<unsigned char>(byte));
      }
    }
    list.push_back({{"id", token.id}, {"piece", std::move(piece)}});
  }
  return dump_json(ordered_json{
      {"tokens", std::move(list)}, {"count", tokens.size()}, {"max_model_len", max_seq}});
}

std::string tokenizer_info_response(const TokenizerInfo& info) {
  const auto token = [](const std::optional<std::string>& bytes) {
    return bytes ? ordered_json(to_valid_utf8(*bytes)) : ordered_json(nullptr);
  };
  return dump_json(ordered_json{{"tokenizer_class", "PreTrainedTokenizerFast"},
                                {"model_max_length", info.max_seq},
                                {"vocab_size", info.vocab_size},
                                {"bos_token", token(info.bos)},
                                {"eos_token", token(info.eos)},
                                {"pad_token", nullptr},
                                {"unk_token", nullptr},
                                {"clean_up_tokenization_spaces", false},
                                {"chat_template", plain_chat_template()}});
}

std::string detokenize_response(std::string_view bytes) {
  const std::string text = to_valid_utf8(bytes);
  return dump_json(ordered_json{{"content", text}, {"prompt", text}});
}

}  // namespace spel::proto
