#include "engine/model/golden.h"

#include "config/base/error.h"

namespace spel::engine {

void require_golden_tokens(std::span<const TokenId> tokens, const ModelConfig& config,
                           const std::string& source) {
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    if (tokens[i] < 0 || static_cast<std::uint32_t>(tokens[i]) >= config.vocab_size) {
      throw Error(ErrorCode::kCorrupt, source + ": golden token " + std::to_string(i) + " is " +
                                           std::to_string(tokens[i]) + "; expected 0 to " +
                                           std::to_string(config.vocab_size - 1));
    }
  }
}

}  // namespace spel::engine
