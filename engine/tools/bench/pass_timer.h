// Passes of one size at a steady place in the context, over and over.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <vector>

#include "engine/model/causal_model.h"

namespace spel::engine::tools {

/// A sequence that is put back after every pass. The model must outlive it.
class PassTimer {
 public:
  /// Passes start after `context` tokens.
  PassTimer(CausalModel& model, std::size_t context);

  /// Feeds `m` tokens as a verification does and takes them back.
  void pass(std::size_t m);

  [[nodiscard]] std::function<void()> body(std::size_t m) {
    return [this, m] { pass(m); };
  }

 private:
  CausalModel& model_;
  std::size_t limit_;
  std::unique_ptr<SequenceState> start_;
  std::unique_ptr<SequenceState> state_;
  std::vector<TokenId> tokens_;
  std::vector<float> logits_;
};

}  // namespace spel::engine::tools
