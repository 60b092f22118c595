#include "engine/model/state_layout.h"

#include <string>

#include "config/base/error.h"
#include "config/base/limits.h"

namespace spel::engine {

StateLayout make_state_layout(const ModelConfig& config, const ModelOptions& options,
                              const std::vector<std::size_t>& layer_index) {
  const auto refuse = [](const std::string& what) {
    throw Error(ErrorCode::kInvalidArgument, what);
  };
  const std::size_t max_seq = options.max_seq == 0 ? config.max_seq : options.max_seq;
  if (max_seq > config.max_seq) {
    refuse("max_seq " + std::to_string(max_seq) + ": this model was made for at most " +
           std::to_string(config.max_seq) + " positions");
  }
  if (options.k_max > limits::kSpecKMax) {
    refuse("k_max " + std::to_string(options.k_max) + ": at most " +
           std::to_string(limits::kSpecKMax) + " proposals a round");
  }
  if (options.max_batch_rows < options.k_max + 1) {
    refuse("max_batch_rows " + std::to_string(options.max_batch_rows) +
           ": a round needs k_max + 1 rows");
  }
  StateLayout layout;
  layout.d_model = config.d_model;
  layout.n_heads = config.n_heads;
  layout.head_dim = config.head_dim;
  layout.conv_taps = config.conv_taps;
  layout.max_seq = max_seq;
  layout.ring_slots = options.k_max + 1;
  for (const std::size_t index : layer_index) {
    layout.is_attention.push_back(config.is_attention(index));
  }
  return layout;
}

}  // namespace spel::engine
