#include "server/translate.h"

#include <array>
#include <cstdio>

#include "config/base/utf8.h"
#include "engine/text/id_tokenizer.h"
#include "proto/error_body.h"
#include "server/normalize_text.h"

namespace spel::server {
namespace {

std::string no_token_message(std::string_view text, std::size_t offset, const std::string& param) {
  const Utf8Character character = first_utf8_character(text.substr(offset));
  std::array<char, 16> name{};
  std::snprintf(name.data(), name.size(), "U+%04X", static_cast<unsigned>(character.code_point));
  std::string message = "\"" + param + "\" has the character " + name.data() + " (\"" +
                        std::string(text.substr(offset, character.bytes)) + "\") at byte " +
                        std::to_string(offset) + ", for which this model has no token.";
  if (const auto ascii = ascii_for(character.code_point)) {
    message +=
        " A server started with --normalize-text reads it as \"" + std::string(*ascii) + "\".";
  }
  return message;
}

}  // namespace

GovernorKind governor_of(const config::ServerConfig& config) {
  return value_named<GovernorKind>(config.governor).value();
}

proto::Receipt to_receipt(const engine::GenerationStats& stats) {
  proto::Receipt receipt;
  receipt.prompt_tokens = stats.prompt_tokens;
  receipt.cached_tokens = stats.cached_tokens;
  receipt.completion_tokens = stats.completion_tokens;
  receipt.prompt_seconds = stats.prefill_seconds;
  receipt.decode_seconds = stats.decode_seconds;
  receipt.draft_enabled = stats.draft_enabled;
  receipt.draft_reason = stats.draft_reason;
  receipt.k = stats.k;
  receipt.governor = stats.governor;
  receipt.rounds = stats.rounds;
  receipt.ar_rounds = stats.ar_rounds;
  receipt.proposed = stats.proposed;
  receipt.accepted = stats.accepted;
  receipt.discarded = stats.discarded;
  receipt.accepted_by_position = stats.accepted_by_position;
  receipt.trips = stats.trips;
  receipt.resumes = stats.resumes;
  receipt.c = stats.c;
  receipt.v = stats.v;
  receipt.tokens_per_second = stats.tokens_per_second();
  receipt.speedup = stats.speedup();
  return receipt;
}

proto::JsonLimits json_limits(const config::ServerConfig& config) {
  return {.bytes = config.body_bytes, .depth = config.json_depth};
}

std::vector<engine::TokenId> encode(const engine::Tokenizer& tokenizer, std::string_view text,
                                    const std::string& param,
                                    const engine::EncodeOptions& options) {
  try {
    return tokenizer.encode(text, options);
  } catch (const engine::NoTokenizerError&) {
    throw proto::RequestError(proto::invalid_request(
        "\"" + param +
            "\" is text, and this model has no tokenizer: give the prompt of "
            "/v1/completions as token ids.",
        param, "no_tokenizer"));
  } catch (const engine::NoTokenError& error) {
    throw proto::RequestError(
        proto::invalid_request(no_token_message(text, error.offset(), param), param, "no_token"));
  }
}

}  // namespace spel::server
