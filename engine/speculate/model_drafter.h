// A small model that proposes token by token: the document's ternary draft.
#pragma once

#include <memory>

#include "engine/model/causal_model.h"
#include "engine/speculate/drafter.h"

namespace spel::engine {

/// A draft that starts afresh reads the end of the text only: half as many tokens as may still
/// come, within bounds. nullptr for no model.
[[nodiscard]] std::unique_ptr<Drafter> make_model_drafter(std::string_view name,
                                                          std::unique_ptr<CausalModel> model);

}  // namespace spel::engine
