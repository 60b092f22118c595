#include "proto/tokenize.h"

#include <array>
#include <utility>

#include "proto/chat.h"
#include "proto/fields.h"
#include "proto/generation_fields.h"

namespace spel::proto {

using json = JsonValue;

namespace {

void write_piece(std::string_view bytes, std::string& out) {
  if (is_valid_utf8(bytes)) {
    write_json_string(bytes, out);
    return;
  }
  char before = '[';
  for (const char byte : bytes) {
    out += before;
    out += std::to_string(static_cast<unsigned char>(byte));
    before = ',';
  }
  out += ']';
}

}  // namespace

TokenizeRequest parse_tokenize_request(std::string_view body, const JsonLimits& limits) {
  JsonObject object = parse_json_object(body, limits);
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
  JsonObject object = parse_json_object(body, limits);
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

TokenizeAnswer::TokenizeAnswer(std::vector<TokenId> tokens, BytesOf bytes, bool with_pieces,
                               std::size_t max_seq)
    : tokens_(std::move(tokens)),
      bytes_(std::move(bytes)),
      with_pieces_(with_pieces),
      max_seq_(max_seq) {}

bool TokenizeAnswer::next(std::string& out) {
  if (!std::exchange(begun_, true)) {
    out += R"({"tokens":[)";
  }
  const std::size_t full = out.size() + kAnswerPartBytes;
  for (; at_ < tokens_.size() && out.size() < full; ++at_) {
    const TokenId token = tokens_[at_];
    out += at_ == 0 ? "" : ",";
    if (with_pieces_) {
      out += R"({"id":)" + std::to_string(token) + R"(,"piece":)";
      write_piece(bytes_(token), out);
      out += '}';
    } else {
      out += std::to_string(token);
    }
  }
  if (at_ < tokens_.size()) {
    return true;
  }
  out += R"(],"count":)" + std::to_string(tokens_.size()) + R"(,"max_model_len":)" +
         std::to_string(max_seq_) + "}";
  return false;
}

std::string tokenizer_info_response(const TokenizerInfo& info) {
  const auto token = [](const std::optional<std::string>& bytes) {
    return bytes ? JsonValue(to_valid_utf8(*bytes)) : JsonValue(nullptr);
  };
  return dump_json(JsonValue{{"tokenizer_class", "PreTrainedTokenizerFast"},
                             {"model_max_length", info.max_seq},
                             {"vocab_size", info.vocab_size},
                             {"bos_token", token(info.bos)},
                             {"eos_token", token(info.eos)},
                             {"pad_token", nullptr},
                             {"unk_token", nullptr},
                             {"clean_up_tokenization_spaces", false},
                             {"chat_template", info.chat_template}});
}

DetokenizeAnswer::DetokenizeAnswer(std::vector<TokenId> tokens, BytesOf bytes)
    : tokens_(std::move(tokens)), bytes_(std::move(bytes)) {}

bool DetokenizeAnswer::next(std::string& out) {
  constexpr std::array<std::string_view, 2> kBefore = {R"({"content":")", R"(","prompt":")"};
  const std::size_t full = out.size() + kAnswerPartBytes;
  for (; member_ < kBefore.size(); ++member_) {
    if (!std::exchange(begun_, true)) {
      out += kBefore[member_];
    }
    for (; at_ < tokens_.size() && out.size() < full; ++at_) {
      const std::string_view bytes = bytes_(tokens_[at_]);
      text_bytes_ += bytes.size();
      write_json_escaped(text_.push(bytes, 0).text, out);
    }
    if (at_ < tokens_.size()) {
      return true;
    }
    write_json_escaped(text_.finish(text_bytes_).text, out);
    text_ = {};
    text_bytes_ = 0;
    at_ = 0;
    begun_ = false;
  }
  out += "\"}";
  return false;
}

}  // namespace spel::proto
