// How large the memory of one sequence in a hybrid model is.
#pragma once

#include <cstddef>
#include <vector>

#include "engine/model/forward.h"

namespace spel::engine {

/// What the memory of a sequence depends on; shared by all states of one model.
struct StateLayout {
  std::size_t d_model = 0;
  std::size_t n_heads = 0;
  std::size_t head_dim = 0;
  std::size_t conv_taps = 0;
  std::size_t max_seq = 0;
  std::size_t ring_slots = 0;      ///< K_max + 1.
  std::vector<bool> is_attention;  ///< [layers]

  [[nodiscard]] std::size_t head_state() const { return head_dim * head_dim; }
  [[nodiscard]] std::size_t layer_state() const { return n_heads * head_state(); }
  /// Rows of layer input kept for the convolution: a full round and the taps before it.
  [[nodiscard]] std::size_t conv_rows() const { return ring_slots + conv_taps - 1; }
  /// Floats of one head's key panels; panels hold 16 positions each.
  [[nodiscard]] std::size_t head_keys() const { return (max_seq + 15) / 16 * 16 * head_dim; }
  [[nodiscard]] std::size_t head_values() const { return max_seq * head_dim; }
};

/// Of a model made of the layers `layer_index` of `config`. Throws kInvalidArgument for options
/// that the model cannot keep.
[[nodiscard]] StateLayout make_state_layout(const ModelConfig& config, const ModelOptions& options,
                                            const std::vector<std::size_t>& layer_index);

}  // namespace spel::engine
