// POST /tokenize and /detokenize.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "proto/generation.h"
#include "proto/json_text.h"
#include "proto/text_assembler.h"

namespace spel::proto {

struct TokenizeRequest {
  std::string content;  ///< May be empty. vLLM's name "prompt" is accepted as well.
  bool add_special = false;
  bool with_pieces = false;
  std::size_t unknown_fields = 0;
};
[[nodiscard]] TokenizeRequest parse_tokenize_request(std::string_view body,
                                                     const JsonLimits& limits = {});

struct DetokenizeRequest {
  std::vector<TokenId> tokens;  ///< Each >= 0.
  std::size_t unknown_fields = 0;
};
[[nodiscard]] DetokenizeRequest parse_detokenize_request(std::string_view body,
                                                         const JsonLimits& limits = {});

/// The bytes of one token.
using BytesOf = std::function<std::string_view(TokenId)>;

/// {"tokens":[ids],"count":n,"max_model_len":max_seq}; with pieces the tokens are {"id","piece"},
/// and a piece that is not valid UTF-8 is an array of byte values. Written part by part, since it
/// can be many times as large as the request.
class TokenizeAnswer {
 public:
  TokenizeAnswer(std::vector<TokenId> tokens, BytesOf bytes, bool with_pieces, std::size_t max_seq);

  /// Appends the next part; false if that was the last.
  [[nodiscard]] bool next(std::string& out);

 private:
  const std::vector<TokenId> tokens_;
  const BytesOf bytes_;
  const bool with_pieces_;
  const std::size_t max_seq_;
  std::size_t at_ = 0;
  bool begun_ = false;
};

/// GET /tokenizer_info.
struct TokenizerInfo {
  std::size_t max_seq = 0;
  std::size_t vocab_size = 0;
  std::string chat_template;       ///< Jinja.
  std::optional<std::string> bos;  ///< The token's bytes.
  std::optional<std::string> eos;
};
/// vLLM's shape: the members of a tokenizer_config.json, with the chat template.
[[nodiscard]] std::string tokenizer_info_response(const TokenizerInfo& info);

/// {"content":text,"prompt":text}: llama.cpp's name and vLLM's. Invalid UTF-8 becomes U+FFFD.
class DetokenizeAnswer {
 public:
  DetokenizeAnswer(std::vector<TokenId> tokens, BytesOf bytes);

  /// Appends the next part; false if that was the last.
  [[nodiscard]] bool next(std::string& out);

 private:
  const std::vector<TokenId> tokens_;
  const BytesOf bytes_;
  std::size_t member_ = 0;  ///< Which of the two names is being written.
  std::size_t at_ = 0;
  bool begun_ = false;  ///< This member's name has been written.
  TextAssembler text_;
  std::size_t text_bytes_ = 0;
};

}  // namespace spel::proto
