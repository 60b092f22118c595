// What speculation needs of a model: run a batch of token rows, and take tokens back.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>

#include "engine/types.h"

namespace spel::engine {

/// All that a model remembers of one sequence. Created by a CausalModel and only valid with it.
/// Not thread-safe; owned by the engine thread.
class SequenceState {
 public:
  virtual ~SequenceState() = default;

  /// Tokens fed and kept so far: the next token fed will sit at this position.
  [[nodiscard]] std::size_t position() const noexcept { return position_; }

  /// Tokens that can be taken back now: those fed with checkpoints, or one at a time, since the
  /// last pass without; never more than the model's max_checkpoints().
  [[nodiscard]] std::size_t rollback_limit() const noexcept { return rollback_limit_; }

  /// Takes back the last `tokens` tokens in O(1): moves indices, copies nothing. `tokens` is at
  /// most rollback_limit().
  virtual void rollback(std::size_t tokens) = 0;

  /// Back to an empty sequence. Keeps the memory.
  virtual void reset() = 0;

  /// Makes this state equal to `other`, which must come from the same model. Used to fork, to take
  /// snapshots and to restore them.
  virtual void copy_from(const SequenceState& other) = 0;

  /// Bytes a copy of this state holds.
  [[nodiscard]] virtual std::size_t bytes() const = 0;

 protected:
  std::size_t position_ = 0;
  std::size_t rollback_limit_ = 0;
};

enum class LogitRows { kNone, kLast, kAll };

/// One sequence's share of a forward pass.
struct ForwardItem {
  SequenceState* state = nullptr;
  std::span<const TokenId> tokens;  ///< Fed at state->position() onwards; not empty.
  /// Keep the recurrent state after every token so that rollback() may stop at any of them. At
  /// most max_checkpoints() tokens then. Off for prefill.
  bool checkpoints = false;
  LogitRows logit_rows = LogitRows::kNone;
  float* logits = nullptr;  ///< [rows][vocab]; nullptr for kNone.
};

class CausalModel {
 public:
  virtual ~CausalModel() = default;

  [[nodiscard]] virtual std::size_t vocab_size() const = 0;
  [[nodiscard]] virtual std::size_t max_seq() const = 0;
  [[nodiscard]] virtual std::size_t max_checkpoints() const = 0;
  /// Token rows one forward() takes over all its items.
  [[nodiscard]] virtual std::size_t max_batch_rows() const = 0;

  [[nodiscard]] virtual std::unique_ptr<SequenceState> make_state() const = 0;

  /// Feeds every item's tokens, advances every state by them and writes the logits asked for. A
  /// row's result depends only on its own sequence. Each state in at most one item. Allocates
  /// nothing. Engine thread only.
  virtual void forward(std::span<const ForwardItem> items) = 0;
};

}  // namespace spel::engine
