// What the engine accepts: the contracts of request.h and capture.h, and a configuration that the
// models can hold. Each throws Error(kInvalidArgument) with what was asked for and what is
// possible.
#pragma once

#include "engine/capture/capture.h"
#include "engine/engine_config.h"
#include "engine/model/causal_model.h"
#include "engine/request/request.h"
#include "engine/request/token_stream.h"
#include "engine/speculate/drafter.h"
#include "engine/text/tokenizer.h"

namespace spel::engine {

/// `config`, if its largest step fits the models' passes. `drafter` may be null.
[[nodiscard]] EngineConfig checked_config(const EngineConfig& config, const CausalModel& target,
                                          const Drafter* drafter);

/// The model knows every id of the tokenizer; further ones of its own are never chosen.
void check_tokenizer(const Tokenizer& tokenizer, const CausalModel& target);

/// Also that `stream` can hold the tokens of one round.
void check_request(const GenerationRequest& request, const TokenStream& stream,
                   const EngineConfig& config, const CausalModel& target);

void check_capture(const CaptureRequest& request, const CaptureShape& shape,
                   const CausalModel& target);

}  // namespace spel::engine
