// One request through an engine, waited for.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "engine/engine.h"
#include "engine/request/request.h"

namespace spel::engine::tools {

struct Generated {
  std::vector<TokenId> tokens;
  FinishEvent finish;
};

using OnToken = std::function<void(const TokenEvent&)>;

/// A submitted request and its reader.
class PendingRun {
 public:
  /// Throws Error if the engine refuses the request.
  PendingRun(Engine& engine, GenerationRequest request);

  /// Everything it answers. Throws Error(kInternal) if the engine ended it with an error.
  [[nodiscard]] Generated wait(const OnToken& on_token = {});

 private:
  struct Signal;
  std::shared_ptr<Signal> signal_;  ///< Shared with the stream's callback, which may outlive this.
  std::shared_ptr<TokenStream> stream_;
};

[[nodiscard]] Generated run_request(Engine& engine, GenerationRequest request,
                                    const OnToken& on_token = {});

}  // namespace spel::engine::tools
