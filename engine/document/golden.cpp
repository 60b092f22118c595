#include "engine/document/golden.h"

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

void require_golden_shape(const GoldenLogits& golden, const ModelConfig& config) {
  const std::size_t logits = kGoldenTokens * std::size_t{config.vocab_size};
  if (golden.tokens.size() != kGoldenTokens || golden.target_logits.size() != logits ||
      golden.draft_logits.size() != logits) {
    throw Error(ErrorCode::kInvalidArgument,
                "golden logits: expected " + std::to_string(kGoldenTokens) + " tokens and twice " +
                    std::to_string(logits) + " logits, found " +
                    std::to_string(golden.tokens.size()) + ", " +
                    std::to_string(golden.target_logits.size()) + " and " +
                    std::to_string(golden.draft_logits.size()));
  }
}

}  // namespace spel::engine
