// The JSON texts of completion and chat answers, whole and in chunks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "proto/generation.h"
#include "proto/logprobs.h"
#include "proto/receipt.h"

namespace spel::proto {

/// The same for every chunk of one answer.
struct ResponseHead {
  std::string id;            ///< "cmpl-…" or "chatcmpl-…"
  std::int64_t created = 0;  ///< Unix seconds.
  std::string model;
  std::string system_fingerprint;  ///< Empty: left out.
};

/// A whole choice, or what one chunk adds to it. `text` is valid UTF-8.
struct Choice {
  std::size_t index = 0;
  std::string text;
  std::string reasoning;  ///< Of a chat: what the model thought, apart from `text`.
  std::optional<FinishReason> finish_reason;  ///< kStop or kLength: others are errors.
  std::string stop_reason;                    ///< The stop string that matched, if one did …
  std::optional<TokenId> stop_token;          ///< … or the one of stop_token_ids.
  /// The tokens of `text`, in order; used for the three members below when those are asked for.
  std::vector<TokenReport> tokens;
  bool with_logprobs = false;   ///< "logprobs" is an object; otherwise null.
  bool with_token_ids = false;  ///< "token_ids" is there.
  /// For each output token its place among its round's accepted proposals, -1: the target's own.
  std::vector<std::int32_t> draft_positions;
};

/// Tokens of the whole request when a chunk is written.
struct UsageSoFar {
  std::size_t prompt_tokens = 0;
  std::size_t completion_tokens = 0;
};

/// What a chunk carries beside its choice.
struct ChunkTail {
  bool usage_null = false;            ///< include_usage was asked for: other chunks say null …
  std::optional<UsageSoFar> usage{};  ///< … or, if asked, this.
  const Receipt* receipt = nullptr;   ///< On the last data chunk.
};

/// A whole answer, a choice at a time: begin(), add() for each choice, end(). With logprobs a
/// choice can take megabytes, and many of them are never in memory as text at once.
class WholeAnswer {
 public:
  enum class Kind { kCompletion, kChat };

  WholeAnswer(Kind kind, const ResponseHead& head) : kind_(kind), head_(head) {}

  void begin(std::string& out) const;
  void add(const Choice& choice, std::string& out);
  static void end(const Receipt& receipt, std::string& out);

 private:
  const Kind kind_;
  const ResponseHead& head_;
  bool first_ = true;
};

[[nodiscard]] std::string completion_chunk(const ResponseHead& head, const Choice& choice,
                                           const ChunkTail& tail);
/// The chunk include_usage asks for: no choices; usage, timings and speculation. It is the last.
[[nodiscard]] std::string completion_usage_chunk(const ResponseHead& head, const Receipt& receipt);

/// The first chunk of a choice: delta {"role":"assistant","content":""}.
[[nodiscard]] std::string chat_role_chunk(const ResponseHead& head, std::size_t index,
                                          const ChunkTail& tail);
/// No text and no reasoning give an empty delta, as the final chunk has it.
[[nodiscard]] std::string chat_chunk(const ResponseHead& head, const Choice& choice,
                                     const ChunkTail& tail);
[[nodiscard]] std::string chat_usage_chunk(const ResponseHead& head, const Receipt& receipt);

/// GET /health…: {"status":"ok"}
[[nodiscard]] std::string health_body();
/// The body of a 503 of the health endpoints: "loading" or "draining", as an error like any other.
[[nodiscard]] std::string health_unavailable_body(std::string_view state);

/// GET /v1/models and /v1/models/{id}.
struct ModelCard {
  std::string id;
  std::int64_t created = 0;
  std::size_t max_seq = 0;
  std::size_t vocab_size = 0;
  std::uint64_t parameters = 0;
  std::uint64_t draft_parameters = 0;  ///< 0: no draft model.
  std::uint64_t bytes = 0;             ///< Weights in memory.
};
[[nodiscard]] std::string models_response(const ModelCard& card);
[[nodiscard]] std::string model_response(const ModelCard& card);

}  // namespace spel::proto
