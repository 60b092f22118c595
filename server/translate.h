// Between the wire's types, the configuration's and the engine's.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "config/server_config.h"
#include "engine/request/request.h"
#include "engine/text/tokenizer.h"
#include "proto/generation.h"
#include "proto/json_text.h"
#include "proto/receipt.h"

namespace spel::server {

/// A name the configuration has already checked.
[[nodiscard]] GovernorKind governor_of(const config::ServerConfig& config);

[[nodiscard]] proto::Receipt to_receipt(const engine::GenerationStats& stats);

[[nodiscard]] proto::JsonLimits json_limits(const config::ServerConfig& config);

/// Throws RequestError (400) naming `param`, the first character the model has no token for and, if
/// that would help, the setting that replaces such characters.
[[nodiscard]] std::vector<engine::TokenId> encode(const engine::Tokenizer& tokenizer,
                                                  std::string_view text, const std::string& param,
                                                  const engine::EncodeOptions& options = {});

}  // namespace spel::server
