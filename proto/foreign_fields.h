// The members of other servers' requests that this one does not act on. Only for the parsers of
// this module.
#pragma once

#include <span>
#include <string_view>

#include "proto/fields.h"

namespace spel::proto {

/// Where a member is known.
enum class Endpoints { kBoth, kCompletions, kChat };

/// Ignoring a member that asks for another answer would answer another question than the one that
/// was put. So each known one is either taken whatever it says, because the answer is the same, or
/// refused unless its value asks for what this server does anyway.
struct ForeignField {
  std::string_view name;
  /// What may be said, as a JSON array. kAnything: any value. kNothing: false, "", [] and {}.
  std::string_view accepted;
  std::string_view advice;  ///< What to send instead; may be empty.
  Endpoints endpoints = Endpoints::kBoth;
};

inline constexpr std::string_view kAnything = "*";
inline constexpr std::string_view kNothing;

/// Of vLLM, SGLang, llama.cpp, Ollama, text-generation-inference, transformers and OpenAI; sorted
/// by what they are about.
[[nodiscard]] std::span<const ForeignField> foreign_fields();

/// True for false, "", [] and {}: values that ask for nothing.
[[nodiscard]] bool asks_for_nothing(const JsonValue& value);

/// Throws RequestError (400) naming the first member that asks for another answer. The others count
/// as known.
void refuse_foreign_fields(Fields& fields, Endpoints endpoint);

}  // namespace spel::proto
