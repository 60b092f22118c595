// The life of a request in the batch: it takes a place, emits tokens, ends.
#pragma once

#include <cstddef>
#include <exception>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "engine/engine_config.h"
#include "engine/schedule/books.h"
#include "engine/schedule/prefix_cache.h"
#include "engine/schedule/sequence.h"
#include "engine/text/tokenizer.h"

namespace spel::engine {

/// Engine thread only; allocates nothing per token unless logprobs are asked for.
class Lifecycle {
 public:
  /// Keeps all of them by reference. `drafter` may be null.
  Lifecycle(const EngineConfig& config, const CausalModel& target, const Drafter* drafter,
            const Tokenizer& tokenizer, Books& books);

  /// Puts a request into a free place. A prompt that was read before has its first token at once,
  /// and may have ended with it.
  void start(Sequence& sequence, GenerationRequest request, std::shared_ptr<TokenStream> stream,
             Clock::time_point submitted_at);
  /// What follows the prompt: the first token, or nothing if none was asked for. False: the model
  /// gave no valid probabilities, and nothing of this prompt is worth keeping.
  bool emit_first(Sequence& sequence, std::span<const float> logits);
  /// Appends one token to the output. Returns true, with sequence.ending filled in, if it is the
  /// last. `draft_position`: -1 where nobody proposed it.
  bool emit(Sequence& sequence, TokenId token, std::int32_t draft_position,
            std::span<const float> logits);
  /// Ends what `ending` says: receipt, FinishEvent, place freed.
  void finish(Sequence& sequence);
  /// Keeps the state after a prompt that was just read, for the next that begins with it.
  void keep_prompt(Sequence& sequence);

  /// Ends a sequence from outside.
  void cancel(Sequence& sequence, FinishReason reason);
  /// Ends a request that never left the queue.
  void refuse(const GenerationRequest& request, TokenStream& stream, FinishReason reason,
              Clock::time_point submitted_at);
  /// Ends what `error` has stopped, in whatever state it is. The place is free afterwards; its
  /// stream is told and not yet flushed.
  void fail(Sequence& sequence, const std::exception& error);

  [[nodiscard]] const PrefixCache& prefix_cache() const noexcept { return prefix_cache_; }

 private:
  /// The tokens that end `request`'s text when they are chosen.
  [[nodiscard]] std::vector<TokenId> end_tokens(const GenerationRequest& request) const;
  /// The stop string that the last token's bytes complete, if it may end the text yet.
  [[nodiscard]] static std::optional<StopMatcher::Match> find_stop(Sequence& sequence,
                                                                   std::string_view bytes);

  const EngineConfig& config_;
  const CausalModel& target_;
  const Drafter* drafter_;
  const Tokenizer& tokenizer_;
  Books& books_;
  std::vector<TokenId> ends_;  ///< Whatever a request says of others.
  PrefixCache prefix_cache_;
};

}  // namespace spel::engine
