// POST /tokenize and /detokenize.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "proto/generation.h"
#include "proto/json_text.h"

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
/// Throws RequestError (400, param "tokens") for an id >= vocab_size.
void check_token_ids(const DetokenizeRequest& request, std::size_t vocab_size);

struct TokenPiece {
  TokenId id = 0;
  std::string bytes;
};
/// {"tokens":[ids],"count":n,"max_model_len":max_seq}; with pieces the tokens are {"id","piece"},
/// and a piece that is not valid UTF-8 is an array of byte values.
[[nodiscard]] std::string tokenize_response(const std::vector<TokenPiece>& tokens, bool with_pieces,
                                            std::size_t max_seq);
/// GET /tokenizer_info.
struct TokenizerInfo {
  std::size_t max_seq = 0;
  std::size_t vocab_size = 0;
  std::optional<std::string> bos;  ///< The token's bytes.
  std::optional<std::string> eos;
};
/// vLLM's shape: the members of a tokenizer_config.json, with the chat template.
[[nodiscard]] std::string tokenizer_info_response(const TokenizerInfo& info);

/// {"content":text,"prompt":text}: llama.cpp's name and vLLM's. Invalid UTF-8 becomes U+FFFD.
[[nodiscard]] std::string detokenize_response(std::string_view bytes);

}  // namespace spel::proto
