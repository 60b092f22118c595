// One place in the batch: the state of a running request.
#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "config/base/limits.h"
#include "engine/model/causal_model.h"
#include "engine/request/request.h"
#include "engine/request/stop_matcher.h"
#include "engine/request/token_stream.h"
#include "engine/sample/sampler.h"
#include "engine/speculate/drafter.h"
#include "engine/speculate/governor.h"
#include "engine/speculate/step_planner.h"

namespace spel::engine {

/// Memory is allocated once and serves one request after another. Engine thread only.
///
/// `tokens` holds prompt and output. The target has been fed target_state->position() of them: all
/// but the last (pending) token once the prompt is done. What the drafter knows may lag by any
/// number; it catches up when it is next asked to propose.
struct Sequence {
  Sequence(const CausalModel& target, const Drafter* drafter, std::size_t k_max,
           std::shared_ptr<Chooser> chooser)
      : target_state(target.make_state()),
        draft_state(drafter != nullptr ? drafter->make_state() : nullptr),
        sampler(std::move(chooser)),
        target_logits((k_max + 1) * target.vocab_size()) {
    tokens.reserve(target.max_seq() + 1);
  }

  std::unique_ptr<SequenceState> target_state;
  std::unique_ptr<DraftState> draft_state;  ///< Null without a drafter.
  std::vector<TokenId> tokens;
  Sampler sampler;
  std::vector<float> target_logits;  ///< [k_max + 1][vocab]

  // The request being served.
  bool active = false;
  GenerationRequest request;
  std::shared_ptr<TokenStream> stream;
  std::unique_ptr<Governor> governor;  ///< Null when nothing is drafted.
  std::optional<StopMatcher> stops;
  GenerationStats stats;
  std::size_t max_output = 0;
  std::size_t output_bytes = 0;
  FinishEvent ending;        ///< Filled in as the output ends; the default is its length.
  PromptEvent prompt_event;  ///< Grows over the prefill when prompt logprobs are asked for.
  Clock::time_point submitted_at;
  Clock::time_point started_at;
  Clock::time_point first_token_at;
  Clock::time_point last_token_at;
  Pace pace;

  // The step being run.
  std::size_t planned_prefill = 0;                     ///< Prompt tokens to feed.
  bool decoding = false;                               ///< Verifies a round in this step.
  std::size_t proposed = 0;                            ///< Proposals of the round.
  bool keep_prompt = false;                            ///< Its state is worth keeping.
  std::array<TokenId, limits::kSpecKMax + 1> round{};  ///< [pending, proposals …]

  [[nodiscard]] std::size_t prompt_size() const { return request.prompt.size(); }
  /// Tokens that may still be emitted.
  [[nodiscard]] std::size_t left() const { return max_output - emitted(); }
  [[nodiscard]] DraftText draft_text() const { return {tokens, left()}; }
  [[nodiscard]] std::size_t emitted() const { return tokens.size() - prompt_size(); }
  [[nodiscard]] bool prefilled() const { return tokens.size() > prompt_size(); }
};

}  // namespace spel::engine
