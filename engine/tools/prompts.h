// The prompts that figures are taken on.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "engine/types.h"

namespace spel::engine::tools {

/// `count` seeded token ids, uniform over the vocabulary: a prompt no draft was trained on.
[[nodiscard]] std::vector<TokenId> random_prompt(std::size_t count, std::size_t vocab,
                                                 std::uint64_t seed);

/// 379 ASCII tokens: `KEY_15=1907; ` at offsets 30, 158 and 286 among words, then `?KEY_15=`. The
/// answer is left to the decoder.
[[nodiscard]] std::string recall_prompt();

/// The prompts of a text file: separated by blank lines if it has any, else one a line. Throws
/// Error(kNotFound or kIo) if it cannot be read, kInvalidArgument if it holds none.
[[nodiscard]] std::vector<std::string> read_prompts(const std::string& path);

}  // namespace spel::engine::tools
