// Cosines and sines of the rotary position embedding.
#pragma once

#include <cstddef>
#include <vector>

namespace spel::engine {

/// angle(position, i) = float(position) * float(theta^(-2i/dims)), in f32 as the trainers do;
/// cos and sin are then exact to f32. Immutable after construction.
class RopeTable {
 public:
  RopeTable(std::size_t max_seq, std::size_t dims, double theta);

  /// [dims/2]
  [[nodiscard]] const float* cos(std::size_t position) const {
    return cos_.data() + position * half_;
  }
  [[nodiscard]] const float* sin(std::size_t position) const {
    return sin_.data() + position * half_;
  }

 private:
  std::size_t half_;
  std::vector<float> cos_;
  std::vector<float> sin_;
};

}  // namespace spel::engine
