// The memory of one sequence in a hybrid model: KV caches and rings of recurrent states.
#pragma once

#include <cstddef>
#include <vector>

#include "engine/model/causal_model.h"
#include "engine/model/spec.h"
#include "kernels/matrix.h"

namespace spel::engine {

/// How large it is; shared by all states of one model.
struct StateLayout {
  struct Layer {
    bool attention = false;
    // Of attention.
    std::size_t kv_heads = 0;
    std::size_t head_dim = 0;
    // Of the delta rule.
    std::size_t state = 0;       ///< Floats of all heads' states.
    std::size_t conv_width = 0;  ///< Values of a row of the convolution's input.
    std::size_t conv_rows = 0;   ///< Rows of it kept: a full round and the taps before it.
    std::size_t taps_before = 0;
  };

  StateLayout(const ModelSpec& spec, std::size_t max_seq_in, std::size_t ring_slots_in);

  std::size_t max_seq;
  std::size_t ring_slots;  ///< K_max + 1.
  std::vector<Layer> layers;

  /// Floats of one head's key panels; panels hold 16 positions each.
  [[nodiscard]] std::size_t head_keys(const Layer& layer) const {
    return (max_seq + 15) / 16 * 16 * layer.head_dim;
  }
  [[nodiscard]] std::size_t head_values(const Layer& layer) const {
    return max_seq * layer.head_dim;
  }
};

/// Rollback moves `slot_` and the position; nothing is copied. Token t of a pass with checkpoints
/// reads slot slot_ + t - 1 and writes slot_ + t (modulo the ring); a pass without reads slot_ and
/// updates slot_ + 1 in place. Attention slots and convolution rows are addressed by position, so
/// what lies beyond the position is dead and will be overwritten.
class HybridState final : public SequenceState {
 public:
  /// `layout` must outlive the state.
  explicit HybridState(const StateLayout& layout);

  void rollback(std::size_t tokens) override;
  void reset() override;
  void copy_from(const SequenceState& other) override;
  [[nodiscard]] std::size_t bytes() const override;

  // For the forward pass.

  /// State [value_heads][value_dim][key_dim] in the slot `ahead` after the current one.
  [[nodiscard]] float* recurrent(std::size_t layer, std::size_t ahead);
  [[nodiscard]] std::size_t conv_rows(std::size_t layer) const {
    return layout_.layers[layer].conv_rows;
  }
  /// The convolution's input at `position`, [conv_width].
  [[nodiscard]] float* conv_row(std::size_t layer, std::size_t position);
  [[nodiscard]] float* keys(std::size_t layer, std::size_t head);
  [[nodiscard]] float* values(std::size_t layer, std::size_t head);
  /// Accounts for `tokens` fed, with a checkpoint after each or only after the last.
  void advance(std::size_t tokens, bool checkpoints);

 private:
  struct Layer {
    kernels::AlignedBuffer recurrent;  ///< [ring_slots][value_heads][value_dim][key_dim]
    kernels::AlignedBuffer conv;       ///< [conv_rows][conv_width]
    kernels::AlignedBuffer keys;       ///< [kv_heads][head_keys]
    kernels::AlignedBuffer values;     ///< [kv_heads][max_seq][head_dim]
  };

  const StateLayout& layout_;
  std::vector<Layer> layers_;
  std::size_t slot_ = 0;
};

/// Of an item that a hybrid model runs.
[[nodiscard]] inline HybridState& state_of(const ForwardItem& item) {
  return static_cast<HybridState&>(*item.state);
}

}  // namespace spel::engine
